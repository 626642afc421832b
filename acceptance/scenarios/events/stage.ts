import { type Bench, openBench, WIDE_BUDGETS } from '../../support/bench.ts'
import { Consumer } from '../../support/consumer.ts'
import { cancelled, created, demand, type OrderBody, same } from '../../support/expect.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'
import type { Json } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

/** A server whose events go to a consumer, and what was committed there. */
export interface Stage extends Bench {
  readonly consumer: Consumer
  /** By order, the types of the events that are owed, in their order. */
  readonly owed: Map<string, string[]>
}

/** Never parks by itself, and tries again soon. */
const PATIENT = { maxAttempts: 1_000, retryDelayMs: 40, retryMaxDelayMs: 80 }

export interface StageOptions {
  /** By which the server is to reach the consumer. */
  readonly host?: string
  /** Of the group `outbox`. */
  readonly outbox?: Json
  readonly config?: Json
  readonly folder?: string
  /** Of an earlier server with the same store. */
  readonly before?: Pick<Stage, 'consumer' | 'owed'>
}

export async function openStage(trial: Trial, options: StageOptions = {}): Promise<Stage> {
  const consumer = options.before?.consumer ?? (await Consumer.listen())
  trial.own(() => consumer.close())
  const { webhook = {}, ...outbox } = options.outbox ?? {}
  const { secret } = consumer
  const url = consumer.url.replace('127.0.0.1', options.host ?? '127.0.0.1')
  const config = {
    ...WIDE_BUDGETS,
    ...options.config,
    outbox: {
      sink: 'webhook',
      ...PATIENT,
      ...outbox,
      webhook: { url, secret, allowPrivateNetworks: true, ...(webhook as Json) },
    },
  }
  const bench = await openBench(trial, config, options.folder)
  return { ...bench, consumer, owed: options.before?.owed ?? new Map() }
}

/** Makes an order, which owes its event from then on. */
export async function place({ api, owed }: Stage, reference?: string): Promise<OrderBody> {
  const order = created(
    await api.order(freshKey(), sampleOrder(reference === undefined ? {} : { reference })),
  )
  owed.set(order.id, ['order.created'])
  return order
}

/** Cancels an order, which owes one event more from then on. */
export async function revoke({ api, owed }: Stage, id: string): Promise<OrderBody> {
  const order = cancelled(await api.cancel(freshKey(), id))
  owed.get(id)?.push('order.cancelled')
  return order
}

/** Makes so many orders, several at once, and cancels every second one. */
export async function placeMany(stage: Stage, count: number, reference?: string): Promise<void> {
  let made = 0
  const write = async () => {
    while (made < count) {
      const cancelsToo = ++made % 2 === 0
      const { id } = await place(stage, reference)
      if (cancelsToo) await revoke(stage, id)
    }
  }
  await Promise.all(Array.from({ length: 4 }, write))
}

/** Waits until the consumer has what it is owed: exactly that, each order's in order. Says how many came how often. */
export async function settled(stage: Stage, limitMs = 5_000): Promise<string> {
  const { consumer, owed } = stage
  // What is committed last comes last: with the second of these, whatever else might have been announced has come.
  for (let turn = 0; turn < 2; turn++) {
    await everything(stage, limitMs)
    await place(stage)
  }
  const events = await everything(stage, limitMs)
  for (const [id, types] of owed) same(consumer.typesOf(id).join(), types.join(), `the events of ${id}`)
  const foreign = [...consumer.taken.keys()].filter(id => !owed.has(id))
  demand(foreign.length === 0, `no event of any other order, saw ${foreign}`)
  faultless(consumer)
  return `${events} events in ${consumer.arrivals.length} deliveries`
}

async function everything({ consumer, owed }: Stage, limitMs: number): Promise<number> {
  const missing = () => {
    const lacks = ([id, types]: [string, string[]]) => consumer.typesOf(id).length < types.length
    return [...owed].filter(lacks).map(([id]) => id)
  }
  await until('every event', () => missing().length === 0, limitMs).catch((error: Error) => {
    const fault = consumer.faults[0] ?? 'none'
    throw new Error(`${error.message}: some of ${missing().length} orders missing; the first fault: ${fault}`)
  })
  return [...owed.values()].flat().length
}

export function faultless({ faults }: Consumer): void {
  demand(faults.length === 0, `no fault of any delivery, saw ${faults.length}, the first: ${faults[0]}`)
}
