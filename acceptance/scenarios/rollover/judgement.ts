import { percentile } from '../../bench/figure.ts'
import { type Answer, describe } from '../../support/answer.ts'
import type { Client } from '../../support/client.ts'
import { created, demand, pageOf, same } from '../../support/expect.ts'
import type { HAProxy } from '../../support/haproxy.ts'
import type { Arrival } from '../../support/open-load.ts'
import type { Trial } from '../../support/trial.ts'
import type { Posted } from './callers.ts'

const LOOKING_AT_ONCE = 16

type Acknowledged = Posted & { readonly answer: Answer }

/** Every request was answered with 201, and the balancer had nothing to mend. */
export async function smooth(
  trial: Trial,
  arrivals: readonly Arrival<Posted>[],
  balancer: HAProxy,
): Promise<void> {
  await trial.check('no caller saw anything but 201', async () => {
    const others = arrivals.map(({ outcome }) => outcome.answer).filter(answer => !isCreated(answer))
    const log = requestLines(balancer)
    demand(
      others.length === 0,
      `201 only, saw ${summary(others)} in ${arrivals.length}, the first: ${shown(others[0])}; HAProxy: ${log.slice(0, 5).join(' | ')}`,
    )
    const latencies = arrivals.map(({ latencyMs }) => latencyMs)
    const [p50, p99, worst] = [0.5, 0.99, 1].map(rank => Math.round(percentile(latencies, rank)))
    return `201 × ${arrivals.length}, from when they were due p50 ${p50} ms, p99 ${p99} ms, at most ${worst} ms`
  })

  await trial.check('the balancer had nothing to try again, and nothing to complain of', async () => {
    const log = requestLines(balancer)
    demand(log.length === 0, `no request in its log, saw ${log.length}: ${log.slice(0, 5).join(' | ')}`)
    return 'no request in its log'
  })
}

/** Every acknowledged order is at one instance, and only there; its key gives the first answer again. */
export async function kept(
  trial: Trial,
  arrivals: readonly Arrival<Posted>[],
  instances: readonly (readonly Client[])[],
): Promise<void> {
  const acknowledged = arrivals.map(({ outcome }) => outcome).filter(hasOrder)

  await trial.check('every acknowledged order is there, once, and answers to its key', async () => {
    demand(acknowledged.length > 0, 'some orders')
    const waiting = [...acknowledged]
    const look = async () => {
      for (let posted = waiting.pop(); posted; posted = waiting.pop()) await lookUp(posted, instances)
    }
    await Promise.all(Array.from({ length: LOOKING_AT_ONCE }, look))
    return `${acknowledged.length} orders`
  })
}

async function lookUp(
  { caller, key, request, answer }: Acknowledged,
  instances: readonly (readonly Client[])[],
) {
  const { id } = created(answer)
  const homes: Client[] = []
  for (const clients of instances) {
    const client = clients[caller] as Client
    const { orders } = pageOf(await client.list({ idempotencyKey: key }))
    if (orders.length === 0) continue
    same(orders.map(order => order.id).join(), id, `the order under ${key}`)
    homes.push(client)
  }
  same(homes.length, 1, `the instances that have order ${id}`)
  const replay = await (homes[0] as Client).order(key, request)
  created(replay, true)
  same(replay.body, answer.body, 'the body')
}

/** What it says of requests: only of those that failed, or were tried again. */
function requestLines({ log }: HAProxy): string[] {
  return log.filter(line => / api punctual\//.test(line))
}

function isCreated(answer: Answer | Error): answer is Answer {
  return !(answer instanceof Error) && answer.status === 201
}

function hasOrder(posted: Posted): posted is Acknowledged {
  return isCreated(posted.answer)
}

function summary(answers: readonly (Answer | Error)[]): string {
  const counts = new Map<string, number>()
  for (const answer of answers) {
    const kind = answer instanceof Error ? 'no answer' : String(answer.status)
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return [...counts].map(([kind, count]) => `${kind} × ${count}`).join(', ')
}

function shown(answer: Answer | Error | undefined): string {
  return answer instanceof Error || answer === undefined ? String(answer) : describe(answer, 200)
}
