import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { PriceList } from '../../src/outbound/call.ts'
import { outboundChannels, PricingClient } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { AttemptLedger } from './attempt-ledger.ts'
import { type Exchange, stage } from './staged-transport.ts'

const SKUS = ['A', 'B', 'C', 'D']
const PRIMED = 25

/** How one exchange goes; a deaf one does not hear that it is aborted, and its answer comes late. */
const way = fc.record({
  how: fc.constantFrom('answer', 'answer', 'answer', 'partly', 'garbage', 'reset', 'refuse', 'hang'),
  afterMs: fc.nat({ max: 55 }),
  deaf: fc.boolean(),
})
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      currency: fc.constantFrom<string>('USD', 'USD', 'USD', 'EUR'),
      skus: fc.uniqueArray(fc.constantFrom(...SKUS), { minLength: 1, maxLength: 3 }),
      neededInMs: fc.oneof(fc.integer({ min: -5, max: 160 }), fc.constant(200)),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat({ max: 40 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('hang-up' as const), which: fc.nat() }) },
)
export const schedules = fc.record({
  ways: fc.array(way, { maxLength: 24 }),
  steps: fc.array(step, { minLength: 1, maxLength: 30 }),
  hedge: fc.record({ enabled: fc.boolean(), maxRatio: fc.constantFrom(0, 0.05, 1) }),
  batch: fc.record({ windowMs: fc.nat({ max: 5 }), maxSize: fc.integer({ min: 1, max: 3 }) }),
  retryBudgetRatio: fc.constantFrom(0, 0.1, 1),
  /** By how much every timer fires early, as real ones may. */
  earlyMs: fc.constantFrom(0, 0, 1),
})
export type Schedule = typeof schedules extends fc.Arbitrary<infer T> ? T : never
type Way = Schedule['ways'][number]
type Step = Schedule['steps'][number]

/** One caller, and what became of it. */
export interface Caller {
  readonly currency: string
  readonly skus: readonly string[]
  /** Its place among all callers and exchanges, since many begin in one millisecond. */
  readonly place: number
  readonly startedMs: number
  readonly neededByMs: number
  readonly request: AbortController
  hungUpMs?: number
  endedMs?: number
  outcome?: PriceList | Error
}

/** One exchange that pricing saw, and how it ended: by what pricing said, or by being aborted first. */
export interface Seen {
  readonly exchange: Exchange
  readonly place: number
  readonly startedMs: number
  readonly prices: Map<string, number>
  end?: { readonly how: Way['how'] | 'aborted'; readonly atMs: number }
  /** When its socket came to rest; a deaf one does so after its end. */
  restedMs?: number
}

export const HUNG_UP = new Error('the client hung up')

/** A schedule, played through the whole chain on a virtual clock. */
export class Story {
  readonly clock: VirtualClock
  readonly callers: Caller[] = []
  readonly seen: Seen[] = []
  readonly ledger: AttemptLedger
  readonly options: ReturnType<typeof outboundOptions.parse>
  readonly #client: PricingClient
  readonly #ways: Way[]
  #places = 0

  constructor({ ways, hedge, batch, retryBudgetRatio, earlyMs }: Schedule) {
    this.clock = new VirtualClock({ earlyMs: () => earlyMs })
    this.#ways = [...ways]
    const channels = outboundChannels()
    this.ledger = new AttemptLedger(channels)
    const shelf = { get: () => undefined, set: () => undefined, delete: () => undefined }
    this.options = outboundOptions.parse({ hedge, batch, retryBudgetRatio, breaker: { minimumRps: 1_000 } })
    this.#client = new PricingClient('http://pricing', this.options, { channels, clock: this.clock, shelf })
    stage.onSend = exchange => this.#send(exchange)
  }

  /** Plays it to its end; `look` is called whenever every promise has settled. */
  async play(steps: readonly Step[], look: () => void): Promise<void> {
    await this.#prime()
    for (const step of steps) {
      if (step.do === 'call') this.#call(step)
      if (step.do === 'hang-up') this.#hangUp(step.which)
      if (step.do === 'advance') await this.clock.advanceAsync(step.ms)
      await promisesSettled()
      look()
    }
    await this.clock.advanceAsync(500)
    look()
  }

  /** Enough quick answers that what is usual is known: 6 ms. */
  async #prime(): Promise<void> {
    const waysOfTheTest = this.#ways.splice(0)
    for (let answers = 0; answers < PRIMED; answers++) {
      this.#ways.push({ how: 'answer', afterMs: 6, deaf: false })
      this.#call({ do: 'call', currency: `P${answers}`, skus: ['A'], neededInMs: 200 })
    }
    await this.clock.advanceAsync(200)
    this.#ways.push(...waysOfTheTest)
    expect(this.seen).toHaveLength(PRIMED)
  }

  #call({ currency, skus, neededInMs }: Step & { do: 'call' }): void {
    const startedMs = this.clock.nowMs()
    const request = new AbortController()
    const caller: Caller = {
      currency,
      skus,
      place: this.#places++,
      startedMs,
      neededByMs: startedMs + neededInMs,
      request,
    }
    this.callers.push(caller)
    const settle = (outcome: PriceList | Error) => {
      caller.outcome = outcome
      caller.endedMs = this.clock.nowMs()
    }
    this.#client
      .fetch({
        currency,
        skus,
        neededByMs: caller.neededByMs,
        signal: request.signal,
        traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      })
      .then(settle, settle)
  }

  #hangUp(which: number): void {
    const caller = this.callers[which % this.callers.length]
    if (caller === undefined || caller.hungUpMs !== undefined) return
    caller.hungUpMs = this.clock.nowMs()
    caller.request.abort(HUNG_UP)
  }

  #send(exchange: Exchange): void {
    const { clock } = this
    const number = this.seen.length
    const way = this.#ways.shift() ?? { how: 'answer', afterMs: 1, deaf: false }
    const prices = new Map(exchange.skus.map((sku, index) => [sku, 10 * number + index]))
    const seen: Seen = { exchange, place: this.#places++, startedMs: clock.nowMs(), prices }
    this.seen.push(seen)
    const end = (how: Way['how'] | 'aborted') => {
      seen.end ??= { how, atMs: clock.nowMs() }
    }
    const isDeaf = way.deaf && way.how !== 'hang'
    const timer = clock.setTimer(() => {
      if (way.how === 'hang') return
      end(way.how)
      seen.restedMs = clock.nowMs()
      answer(exchange, way.how, prices)
    }, way.afterMs)
    exchange.signal.addEventListener('abort', () => {
      end('aborted')
      if (isDeaf) return
      seen.restedMs = clock.nowMs()
      clock.clearTimer(timer)
    })
    if (!isDeaf) exchange.obey()
  }

  listenersLeft(): number {
    return this.callers.flatMap(({ request }) => getEventListeners(request.signal, 'abort')).length
  }
}

function answer(exchange: Exchange, how: Way['how'], prices: Map<string, number>): void {
  if (how === 'reset') exchange.reset()
  if (how === 'refuse') exchange.refuse()
  if (how === 'garbage') exchange.say('{"prices":[{"sku":')
  if (how === 'answer') exchange.price(sku => prices.get(sku) ?? -1)
  if (how !== 'partly') return
  // The first has a price that is none, the last is unknown, and one that nobody asked for has a price.
  const [first] = exchange.skus
  const last = exchange.skus.at(-1)
  prices.set('uninvited', 1)
  const entries = [...prices].filter(([sku]) => sku !== last || sku === first)
  exchange.say(
    JSON.stringify({
      prices: entries.map(([sku, unitPrice]) => ({ sku, unitPrice: sku === first ? -1 : unitPrice })),
      unknown: last === first ? [] : [last],
    }),
  )
}

/** What an answer says of a SKU. */
export function saidOf({ exchange, prices, end }: Seen, sku: string): number | 'unknown' | 'bad' | undefined {
  if (!exchange.skus.includes(sku)) return undefined
  if (end?.how === 'answer') return prices.get(sku)
  if (end?.how !== 'partly') return end?.how === 'garbage' || end?.how === 'reset' ? 'bad' : undefined
  if (sku === exchange.skus[0]) return 'bad'
  return sku === exchange.skus.at(-1) ? 'unknown' : prices.get(sku)
}
