import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { outboundChannels, PricingClient } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { createPriceShelf } from '../../src/pricing/index.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { KEYS } from '../support/keys.ts'
import { startServer } from '../support/server.ts'
import { type Bench, type Figure, median, percentile } from './figure.ts'
import { heapAfterGc } from './heap.ts'

/**
 * What the outbound chain spares the pricing service and its callers, each mechanism on and off in one run, against
 * a pricing service in a process of its own.
 */
export const outbound: Bench = {
  name: 'outbound',
  async run({ short, say }) {
    const service = await startService()
    try {
      return [
        ...(await collapsed(service, short ? 1_000 : 10_000)),
        ...(await storm(service, short ? 8_000 : 80_000, say)),
        ...(await hedged(service, short ? 400 : 4_000, say)),
        ...(await failing(service, say)),
        ...(await answering(service, say)),
        ...(await aborted(service, short ? 1_000 : 10_000)),
      ]
    } finally {
      service.stop()
    }
  },
}

interface Service {
  readonly url: string
  behave(behaviour: object): Promise<void>
  calls(): Promise<number>
  stop(): void
}

async function startService(): Promise<Service> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'pricing-service.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [port] = (await once(child.stdout, 'data')) as [Buffer]
  const url = `http://127.0.0.1:${port.toString().trim()}`
  return {
    url,
    behave: async behaviour => {
      await (
        await fetch(`${url}/behaviour`, { method: 'PUT', body: JSON.stringify(behaviour) })
      ).arrayBuffer()
    },
    calls: async () => Number(await (await fetch(`${url}/calls`)).text()),
    stop: () => child.kill(),
  }
}

const QUIET = { minMs: 0, maxMs: 0, slowShare: 0, slowMs: 0, status: 200 }
// Wide enough that nothing but the mechanism under measurement decides.
const WIDE = { leaseMs: 6_000, totalMs: 5_000, attemptMs: 2_000, maxConcurrent: 10_000 }
const BUDGET_MS = 8_000

function openClient(url: string, options: object) {
  const channels = outboundChannels()
  const counts = { launched: 0, retries: 0, hedges: 0, opened: 0 }
  channels.launched.subscribe(() => counts.launched++)
  channels.retry.subscribe(() => counts.retries++)
  channels.hedge.subscribe(({ result }) => {
    if (result !== 'shed') counts.hedges++
  })
  channels.breaker.subscribe(({ state }) => {
    if (state === 'open') counts.opened++
  })
  const shelf = createPriceShelf({ fallbackMaxAgeMs: 0, maxBytes: 1 }, systemClock)
  const client = new PricingClient(url, outboundOptions.parse(options), {
    channels,
    clock: systemClock,
    shelf,
  })
  const quote = (skus: readonly string[], signal = new AbortController().signal) =>
    client.fetch({
      currency: 'USD',
      skus,
      neededByMs: systemClock.nowMs() + BUDGET_MS,
      signal,
      traceparent: '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01',
    })
  /** Asks, and leaves `afterMs` later. */
  const leave = async (skus: readonly string[], afterMs: number) => {
    const caller = new AbortController()
    setTimeout(() => caller.abort(), afterMs)
    await quote(skus, caller.signal).catch(() => undefined)
  }
  return { client, counts, quote, leave }
}

/** Identical quotes, all in flight at once. */
async function collapsed(service: Service, quotes: number): Promise<Figure[]> {
  await service.behave({ ...QUIET, minMs: 50, maxMs: 50 })
  const { client, quote } = openClient(service.url, WIDE)
  await Promise.all(Array.from({ length: quotes }, () => quote(['SKU-1', 'SKU-2'])))
  const calls = await service.calls()
  await client.close()
  return [
    { what: `calls for ${quotes} identical quotes`, measured: calls, unit: 'calls', wanted: { atMost: 1 } },
  ]
}

/** Waves of quotes over 1,000 sets of 1 to 5 out of 400 SKUs; without collapse and batch each would be a call. */
async function storm(service: Service, quotes: number, say: (line: string) => void): Promise<Figure[]> {
  await service.behave({ ...QUIET, minMs: 40, maxMs: 80 })
  const { client, quote } = openClient(service.url, WIDE)
  const sets = Array.from({ length: 1_000 }, () => {
    const skus = Array.from({ length: 1 + Math.floor(Math.random() * 5) }, () =>
      Math.floor(Math.random() * 400),
    )
    return [...new Set(skus)].map(sku => `SKU-${sku}`)
  })
  const startedMs = performance.now()
  const waves = 10
  for (let wave = 0; wave < waves; wave++) {
    await Promise.all(Array.from({ length: quotes / waves }, (_, n) => quote(sets[n % sets.length] ?? [])))
  }
  const calls = await service.calls()
  const rate = quotes / ((performance.now() - startedMs) / 1000)
  say(`storm: ${quotes} quotes, ${calls} calls, ${Math.round(rate)} quotes/s`)
  await client.close()
  const cutPercent = 100 * (1 - calls / quotes)
  return [{ what: 'calls cut in a mixed storm', measured: cutPercent, unit: '%', wanted: { atLeast: 98.5 } }]
}

/** 2 % of the answers take 200 ms, the rest 10: the 99th percentile with hedging on and off. */
async function hedged(service: Service, quotes: number, say: (line: string) => void): Promise<Figure[]> {
  await service.behave({ ...QUIET, minMs: 10, maxMs: 10, slowShare: 0.02, slowMs: 200 })
  const measure = async (enabled: boolean) => {
    const options = { ...WIDE, hedge: { enabled }, batch: { windowMs: 0, maxSize: 1 } }
    const { client, counts, quote } = openClient(service.url, options)
    const latencies: number[] = []
    let next = 0
    const worker = async () => {
      while (next < quotes) {
        const startedMs = performance.now()
        await quote([`SKU-${next++}`])
        latencies.push(performance.now() - startedMs)
      }
    }
    await Promise.all(Array.from({ length: 8 }, worker))
    await client.close()
    return { p99Ms: percentile(latencies, 0.99), extraPercent: (100 * counts.hedges) / quotes }
  }
  const off = await measure(false)
  const on = await measure(true)
  say(`hedging off: P99 ${off.p99Ms.toFixed(1)} ms; on: P99 ${on.p99Ms.toFixed(1)} ms`)
  const cutPercent = 100 * (1 - on.p99Ms / off.p99Ms)
  return [
    { what: 'P99 cut by hedging', measured: cutPercent, unit: '%', wanted: { atLeast: 60 } },
    { what: 'extra attempts by hedging', measured: on.extraPercent, unit: '%', wanted: { atMost: 5 } },
  ]
}

/** A service that fails everything: what retries add to its load, with a breaker that never opens. */
async function failing(service: Service, say: (line: string) => void): Promise<Figure[]> {
  await service.behave({ ...QUIET, status: 500 })
  const calls = 2_000
  const options = { ...WIDE, batch: { windowMs: 0, maxSize: 1 }, breaker: { minimumRps: 100_000 } }
  const { client, counts, quote } = openClient(service.url, options)
  const round = async (name: string) => {
    for (let n = 0; n < calls; n += 50) {
      await Promise.allSettled(Array.from({ length: 50 }, (_, k) => quote([`${name}-${n + k}`])))
    }
  }
  await round('spend')
  const before = counts.launched
  await round('spent')
  const ratio = (counts.launched - before) / calls
  await client.close()
  say(`failing service: ${counts.launched} attempts for ${2 * calls} calls`)
  return [
    { what: 'attempts per call, retry budget spent', measured: ratio, unit: '', wanted: { atMost: 1.1 } },
  ]
}

/** The same over HTTP: how soon the breaker opens, how quickly orders are refused then, how soon it recovers. */
async function answering(service: Service, say: (line: string) => void): Promise<Figure[]> {
  await service.behave({ ...QUIET, status: 500 })
  const server = await startServer({ pricingUrl: service.url, config: { lifecycle: { warmUp: false } } })
  try {
    let key = 0
    const post = async () => {
      const startedMs = performance.now()
      const answer = await fetch(`http://127.0.0.1:${server.port}/v1/orders`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${KEYS.full}`,
          'content-type': 'application/json',
          'idempotency-key': `bench-${key++}`,
        },
        body: `{"customerId":"c","currency":"USD","items":[{"sku":"SKU-${key}","quantity":1}]}`,
      })
      await answer.arrayBuffer()
      return { status: answer.status, ms: performance.now() - startedMs }
    }
    const metric = async () => {
      const text = await (await fetch(`http://127.0.0.1:${server.adminPort}/metrics`)).text()
      return Number(/^punctual_outbound_breaker_state (\d)/m.exec(text)?.[1])
    }
    const failingSinceMs = performance.now()
    while ((await metric()) !== OPEN) await post()
    const openedMs = performance.now() - failingSinceMs
    const refusals: number[] = []
    const untilMs = performance.now() + HALF_OPEN_AFTER_MS / 2
    while (performance.now() < untilMs) {
      const { status, ms } = await post()
      if (status === 503) refusals.push(ms)
    }
    await service.behave(QUIET)
    const wellSinceMs = performance.now()
    while ((await metric()) !== CLOSED) await post()
    const recoveredMs = performance.now() - wellSinceMs
    say(`breaker open after ${Math.round(openedMs)} ms, ${refusals.length} refusals while open`)
    return [
      { what: 'breaker open after', measured: openedMs, unit: 'ms', wanted: { atMost: SAMPLING_MS } },
      {
        what: 'POST refused while open, median',
        measured: median(refusals),
        unit: 'ms',
        wanted: { atMost: 5 },
      },
      {
        what: 'recovery once pricing is well',
        measured: recoveredMs,
        unit: 'ms',
        wanted: { atMost: HALF_OPEN_AFTER_MS + 1_000 },
      },
    ]
  } finally {
    await server.stop()
    await server.end()
  }
}

/** Calls whose callers leave while pricing is silent: what they leave behind. */
async function aborted(service: Service, calls: number): Promise<Figure[]> {
  await service.behave({ ...QUIET, minMs: 60_000, maxMs: 60_000 })
  const { client, leave } = openClient(service.url, WIDE)
  const round = async () => {
    for (let left = 0; left < calls; left += 200) {
      await Promise.all(Array.from({ length: 200 }, (_, n) => leave([`SKU-${left + n}`], n % 8)))
    }
  }
  await round()
  const before = { heapBytes: await heapAfterGc(), resources: openResources() }
  await round()
  const grownBytes = (await heapAfterGc()) - before.heapBytes
  const leftBehind = openResources() - before.resources
  await client.close()
  return [
    {
      what: `heap grown by ${calls} aborted calls`,
      measured: grownBytes / calls,
      unit: 'bytes/call',
      wanted: { atMost: 100 },
    },
    { what: 'sockets and timers that they left', measured: leftBehind, unit: '', wanted: { atMost: 0 } },
  ]
}

function openResources(): number {
  return process.getActiveResourcesInfo().filter(kind => kind === 'TCPSocketWrap' || kind === 'Timeout')
    .length
}

// Of the defaults.
const SAMPLING_MS = 10_000
const HALF_OPEN_AFTER_MS = 1_000
const [CLOSED, OPEN] = [0, 2] as const
