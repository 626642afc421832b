import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSink, outboxChannels, Relay } from '../../src/outbox/index.ts'
import { type OutboxOptions, outboxOptions } from '../../src/outbox/options.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { openStore, type Store, storeChannels } from '../../src/store/index.ts'
import { storeOptions } from '../../src/store/options.ts'
import { type Bench, type Figure, median } from './figure.ts'
import { measure, needWrk } from './orders.ts'
import { someOrder } from './some-order.ts'

/**
 * How fast events leave the outbox, how soon after their commit, and what that costs the orders. The consumer is a
 * process of its own on loopback.
 */
export const events: Bench = {
  name: 'events',
  async run({ short, say }) {
    needWrk()
    const consumer = await startConsumer()
    try {
      const backlog = short ? 5_000 : 100_000
      return [
        await drained({ sink: 'none' }, backlog, 20_000),
        await drained(webhookTo(consumer.url), backlog, 5_000),
        await delay(webhookTo(consumer.url), short ? 20 : 200),
        await beside(webhookTo(consumer.url), short, say),
      ]
    } finally {
      consumer.stop()
    }
  },
}

async function startConsumer(): Promise<{ url: string; stop: () => void }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'event-consumer.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [port] = (await once(child.stdout, 'data')) as [Buffer]
  return { url: `http://127.0.0.1:${port.toString().trim()}/hook`, stop: () => child.kill() }
}

function webhookTo(url: string) {
  const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
  return { sink: 'webhook', webhook: { url, secret, allowPrivateNetworks: true } } as const
}

/** A backlog as an outage leaves it, drained through the relay. */
async function drained(options: object, backlog: number, atLeast: number): Promise<Figure> {
  return withRelay(options, async ({ store, relay, delivered, parsed }) => {
    for (let placed = 0; placed < backlog; placed += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, () => store.commit(someOrder(), NEVER)))
    }
    const all = Promise.withResolvers<void>()
    let count = 0
    delivered.subscribe(() => {
      if (++count === backlog) all.resolve()
    })
    const startedMs = performance.now()
    relay.start()
    await all.promise
    const perSecond = backlog / ((performance.now() - startedMs) / 1000)
    return {
      what: `a backlog of ${backlog} to the sink ${parsed.sink}`,
      measured: perSecond,
      unit: 'events/s',
      wanted: { atLeast },
    }
  })
}

/** From the answer to a commit to the consumer's, one order at a time. */
async function delay(options: object, orders: number): Promise<Figure> {
  return withRelay(options, async ({ store, relay, delivered }) => {
    relay.start()
    const delaysMs: number[] = []
    for (let placed = 0; placed < orders; placed++) {
      const arrived = Promise.withResolvers<void>()
      const unsubscribe = delivered.subscribe(() => arrived.resolve())
      await store.commit(someOrder(), NEVER)
      const startedMs = performance.now()
      await arrived.promise
      unsubscribe()
      delaysMs.push(performance.now() - startedMs)
    }
    return {
      what: 'commit to delivery, idle, median',
      measured: median(delaysMs),
      unit: 'ms',
      wanted: { atMost: 20 },
    }
  })
}

/** Orders per second with the relay at work, and with one that hardly ever claims, in turn. */
async function beside(outbox: object, short: boolean, say: (line: string) => void): Promise<Figure> {
  const ratios: number[] = []
  for (let round = 0; round < (short ? 1 : 5); round++) {
    const seconds = short ? 2 : 5
    const rates = { on: 0, off: 0 }
    for (const relay of round % 2 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
      const config = relay === 'on' ? { outbox } : { outbox: HARDLY_EVER, capacity: { targetRps: 1 } }
      rates[relay] = (await measure('punctual', seconds, config)).ordersPerSecond
      say(`relay ${relay.padEnd(3)} ${Math.round(rates[relay])} orders/s`)
    }
    ratios.push(rates.on / rates.off)
  }
  return {
    what: 'orders/s with the relay beside without',
    measured: median(ratios),
    unit: '×',
    wanted: { atLeast: 0.9 },
  }
}

interface World {
  readonly store: Store
  readonly relay: Relay
  readonly delivered: ReturnType<typeof outboxChannels>['delivered']
  readonly parsed: OutboxOptions
}

async function withRelay(options: object, use: (world: World) => Promise<Figure>): Promise<Figure> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  const stored = storeChannels()
  const store = await openStore(storeOptions.parse({ sqlite: { path: join(folder, 'orders.db') } }), {
    clock: systemClock,
    channels: stored,
    settleGraceMs: 25,
    maxPending: AT_ONCE,
  })
  const channels = outboxChannels()
  const parsed = outboxOptions.parse(options)
  const sink = openSink(parsed, { clock: systemClock, writeLine: async () => true })
  const relay = new Relay({
    outbox: store.outbox,
    sink,
    options: parsed,
    channels,
    clock: systemClock,
    isBusy: () => false,
    random: Math.random,
  })
  stored.committed.subscribe(() => relay.wake())
  try {
    return await use({ store, relay, delivered: channels.delivered, parsed })
  } finally {
    await relay.close()
    await sink.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const AT_ONCE = 1_000
const NEVER = new AbortController().signal
// One event in 400 ms, as soon as orders come in.
const HARDLY_EVER = { sink: 'none', batchSize: 1 }
