import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OutboundFailure, type PriceCall, type PriceList } from '../../src/outbound/call.ts'
import { collapse } from '../../src/outbound/collapse.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'

const HUNG_UP = new Error('the client hung up')
const listOf = (sku: string, price: number): PriceList => ({
  prices: new Map([[sku, price]]),
  unknown: [],
  bad: [],
  source: 'live',
})

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      currency: fc.constantFrom('USD', 'EUR'),
      skus: fc.uniqueArray(fc.constantFrom('A', 'B', 'C'), { minLength: 1, maxLength: 3 }),
      leftMs: fc.integer({ min: 1, max: 50 }),
      endedBy: fc.constantFrom('lease' as const, 'limit' as const),
      fenced: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('land' as const),
      which: fc.nat(),
      how: fc.constantFrom('price' as const, 'unknown' as const, 'failure' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 20 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('hang-up' as const), which: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('move' as const), sku: fc.constantFrom('A', 'B', 'C') }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

interface Flight {
  readonly call: PriceCall
  readonly landing: PromiseWithResolvers<PriceList>
  readonly waiters: Set<Waiter>
  /** On the fence's count. */
  leftAt: number
  end?: 'landed' | 'abandoned'
}

interface Waiter {
  readonly call: PriceCall
  readonly request: AbortController
  readonly flights: Set<Flight>
  readonly prices: Map<string, number>
  readonly unknown: string[]
  readonly outcome: Promise<unknown>
  /** What the model says becomes of it. */
  expected?: unknown
}

/** The collapse beside a model that knows only its promises. */
class Modelled {
  readonly clock = new VirtualClock()
  readonly flights: Flight[] = []
  readonly waiters: Waiter[] = []
  /** The count of a fence, and each SKU's last move on it. */
  #now = 0
  readonly #moves = new Map<string, number>()
  #launched: Flight[] = []
  readonly #fetch = collapse(this.clock)(call => {
    const flight: Flight = { call, landing: Promise.withResolvers(), waiters: new Set(), leftAt: 0 }
    this.#launched.push(flight)
    return flight.landing.promise
  })

  async take(step: Step): Promise<void> {
    if (step.do === 'call') this.call(step)
    if (step.do === 'land') this.land(step.which, step.how)
    if (step.do === 'hang-up') this.hangUp(step.which)
    if (step.do === 'move') this.#moves.set(step.sku, ++this.#now)
    if (step.do === 'advance') await this.advance(step.ms)
    await promisesSettled()
    await this.compare()
  }

  /** Takes part in what is in flight and new enough, and launches the rest, one flight for each SKU. */
  call({ currency, skus, leftMs, endedBy, fenced }: Omit<Step & { do: 'call' }, 'do'>): void {
    const request = new AbortController()
    const endsAtMs = this.clock.nowMs() + leftMs
    const notBefore = fenced ? Math.max(...skus.map(sku => this.#moves.get(sku) ?? 0)) : 0
    const call: PriceCall = {
      currency,
      skus,
      endsAtMs,
      endedBy,
      signal: request.signal,
      traceparent: '',
      ...(fenced && { fence: { now: this.#now, notBefore } }),
    }
    const open = skus.map(sku => {
      const latest = this.flights.findLast(one => one.call.currency === currency && one.call.skus[0] === sku)
      return latest?.end === undefined && (latest?.leftAt ?? 0) >= notBefore ? latest : undefined
    })
    const outcome = this.#fetch(call).catch((error: unknown) => error)
    const missing = skus.filter((_, index) => open[index] === undefined)
    expect(this.#launched.map(flight => [flight.call.currency, ...flight.call.skus])).toEqual(
      missing.map(sku => [currency, sku]),
    )
    const flights = new Set([...open.filter(flight => flight !== undefined), ...this.#launched])
    for (const flight of this.#launched) flight.leftAt = fenced ? this.#now : 0
    this.flights.push(...this.#launched)
    this.#launched = []
    const waiter: Waiter = { call, request, flights, prices: new Map(), unknown: [], outcome }
    for (const flight of flights) flight.waiters.add(waiter)
    this.waiters.push(waiter)
  }

  open(): Flight[] {
    return this.flights.filter(({ end }) => end === undefined)
  }

  land(which: number, how: 'price' | 'unknown' | 'failure'): void {
    const flight = this.open()[which % Math.max(1, this.open().length)]
    const [sku] = flight?.call.skus ?? []
    if (flight === undefined || sku === undefined) return
    flight.end = 'landed'
    const failure = new OutboundFailure('failed')
    const list: PriceList =
      how === 'price' ? listOf(sku, which) : { ...listOf(sku, 0), prices: new Map(), unknown: [sku] }
    if (how === 'failure') flight.landing.reject(failure)
    else flight.landing.resolve(list)
    for (const waiter of [...flight.waiters]) {
      if (how === 'failure') this.leave(waiter, failure)
      else {
        if (how === 'price') waiter.prices.set(sku, which)
        else waiter.unknown.push(sku)
        waiter.flights.delete(flight)
        const { prices, unknown } = waiter
        if (waiter.flights.size === 0) waiter.expected = { prices, unknown, bad: [], source: 'live' }
      }
    }
  }

  leave(waiter: Waiter, error: unknown): void {
    waiter.expected = error
    for (const flight of waiter.flights) {
      flight.waiters.delete(waiter)
      if (flight.waiters.size === 0) flight.end ??= 'abandoned'
    }
  }

  hangUp(which: number): void {
    const waiter = this.waiters[which % Math.max(1, this.waiters.length)]
    if (waiter === undefined || waiter.request.signal.aborted) return
    waiter.request.abort(HUNG_UP)
    if (waiter.expected === undefined) this.leave(waiter, HUNG_UP)
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advanceAsync(ms)
    for (const waiter of this.waiters) {
      if (waiter.expected !== undefined || waiter.call.endsAtMs > this.clock.nowMs()) continue
      const kind = waiter.call.endedBy === 'lease' ? 'budget' : 'timeout'
      this.leave(waiter, expect.objectContaining({ name: 'OutboundFailure', kind }))
    }
  }

  async compare(): Promise<void> {
    for (const waiter of this.waiters) {
      const now = await Promise.race([waiter.outcome, Promise.resolve()])
      expect(now).toEqual(waiter.expected)
    }
    for (const { call, waiters, end } of this.flights) {
      // Only a flight that everybody has left is aborted; it lasts as long as the latest who is on it.
      expect(call.signal.aborted).toBe(end === 'abandoned')
      if (end === undefined)
        expect(call.endsAtMs).toBe(Math.max(...[...waiters].map(one => one.call.endsAtMs)))
    }
  }
}

describe('the collapse', () => {
  test('keeps its promises under every order of calls, landings, hang-ups and ends', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
        const modelled = new Modelled()
        for (const step of steps) await modelled.take(step)
        await modelled.take({ do: 'advance', ms: 60 })
        expect(modelled.open()).toEqual([])
        expect(modelled.clock.pendingTimers).toBe(0)
        const left = modelled.waiters.flatMap(({ request }) => getEventListeners(request.signal, 'abort'))
        expect(left).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  test('of 10,000 identical quotes makes one call, and gives each of them its price', async () => {
    const modelled = new Modelled()
    for (let calls = 0; calls < 10_000; calls++) {
      modelled.call({ currency: 'USD', skus: ['A'], leftMs: 50, endedBy: 'lease', fenced: false })
    }
    expect(modelled.flights).toHaveLength(1)
    modelled.land(0, 'price')
    const prices = await Promise.all(modelled.waiters.map(({ outcome }) => outcome))
    expect(prices).toHaveLength(10_000)
    for (const price of prices) expect(price).toEqual(listOf('A', 0))
  })

  test('gives nobody a price that was asked for before its fence wants it, and forgets no later flight', async () => {
    const landings: PromiseWithResolvers<PriceList>[] = []
    const fetch = collapse(new VirtualClock())(() => {
      const landing = Promise.withResolvers<PriceList>()
      landings.push(landing)
      return landing.promise
    })
    const { signal } = new AbortController()
    const call = {
      currency: 'USD',
      skus: ['A'],
      endsAtMs: 2_000,
      endedBy: 'lease' as const,
      signal,
      traceparent: '',
    }
    const early = fetch({ ...call, fence: { now: 6, notBefore: 3 } })
    const along = fetch({ ...call, fence: { now: 9, notBefore: 6 } })
    expect(landings).toHaveLength(1)
    const late = fetch({ ...call, fence: { now: 9, notBefore: 7 } })
    expect(landings).toHaveLength(2)
    landings[0]?.resolve(listOf('A', 1))
    expect([await early, await along]).toEqual([listOf('A', 1), listOf('A', 1)])
    // The end of the old flight leaves the new one where newcomers find it, with a fence or without.
    const later = [fetch({ ...call, fence: { now: 9, notBefore: 9 } }), fetch(call)]
    expect(landings).toHaveLength(2)
    landings[1]?.resolve(listOf('A', 2))
    expect(await Promise.all([late, ...later])).toEqual([listOf('A', 2), listOf('A', 2), listOf('A', 2)])
  })

  test('does not take part for a request that has ended', async () => {
    let launched = 0
    const fetch = collapse(new VirtualClock())(async () => {
      launched++
      return listOf('A', 1)
    })
    const signal = AbortSignal.abort(HUNG_UP)
    const call: PriceCall = {
      currency: 'USD',
      skus: ['A'],
      endsAtMs: 2_000,
      endedBy: 'lease',
      signal,
      traceparent: '',
    }
    await expect(fetch(call)).rejects.toBe(HUNG_UP)
    expect(launched).toBe(0)
  })
})
