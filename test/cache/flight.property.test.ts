import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Flight, type FlightResult } from '../../src/cache/flight.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { type Watched, watch } from './loads.ts'

const HUNG_UP = new Error('the client hung up')

// Steps stand on a grid of 5 ms, and limits 2 ms before it: as long as it takes to make good a timer that fired early.
const GRID_MS = 5
const LIMITS = { waitTimeoutMs: 98, loadTimeoutMs: 88, queryTimeoutMs: 73 }

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('join' as const), signalled: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('advance' as const), turns: fc.integer({ min: 1, max: 8 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('hang-up' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('start' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('land' as const), fails: fc.boolean() }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

interface Waiter {
  readonly watched: Watched
  readonly request: AbortController
  readonly signalled: boolean
  readonly untilMs: number
  /** What the model says becomes of it. */
  fate: unknown
}

const failure = (kind: string) => ({ threw: expect.objectContaining({ name: 'CacheFailure', kind }) })

/** A flight beside a model that knows only its promises. */
class Modelled {
  readonly clock: VirtualClock
  readonly waiters: Waiter[] = []
  readonly #pinned: boolean
  readonly #ends: FlightResult[] = []
  readonly #flight: Flight<unknown>
  #startedAtMs = Number.POSITIVE_INFINITY
  #end: FlightResult | undefined

  constructor(pinned: boolean, early: readonly number[]) {
    let timers = 0
    // Now and then one is on time, or a virtual clock would not get past it.
    this.clock = new VirtualClock({ earlyMs: () => early[timers++ % (early.length + 1)] ?? 0 })
    this.#pinned = pinned
    this.#flight = new Flight<unknown>(0, {
      clock: this.clock,
      limits: LIMITS,
      pinned,
      onEnd: result => this.#ends.push(result),
      onWaitTimeout: () => {},
    })
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'join') this.join(step.signalled)
    if (step.do === 'hang-up') this.hangUp(step.which)
    if (step.do === 'start') this.start()
    if (step.do === 'land') this.land(step.fails)
    if (step.do === 'advance') await this.advance(step.turns * GRID_MS)
    await promisesSettled()
    this.compare()
  }

  join(signalled: boolean): void {
    if (this.#end !== undefined) return
    const request = new AbortController()
    const watched = watch(this.#flight.join(signalled ? request.signal : undefined))
    const untilMs = this.clock.nowMs() + LIMITS.waitTimeoutMs
    this.waiters.push({ watched, request, signalled, untilMs, fate: 'open' })
  }

  hangUp(which: number): void {
    const waiter = this.waiters[which % Math.max(1, this.waiters.length)]
    waiter?.request.abort(HUNG_UP)
    if (waiter?.signalled) this.leave(waiter, { threw: HUNG_UP })
  }

  start(): void {
    if (this.#end !== undefined || this.#flight.loading) return
    this.#startedAtMs = this.clock.nowMs()
    this.#flight.startLoad(1)
  }

  land(fails: boolean): void {
    if (!this.#flight.loading) return
    if (this.#end === undefined)
      this.finish(fails ? 'failed' : 'ok', fails ? { threw: HUNG_UP } : { value: 7 })
    if (fails) this.#flight.fail(HUNG_UP)
    else this.#flight.land(7)
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advanceAsync(ms)
    const loadEndsAtMs = this.#startedAtMs + LIMITS.loadTimeoutMs
    for (const waiter of this.#waiting()) {
      const goesFirst = waiter.untilMs < loadEndsAtMs
      if (waiter.untilMs <= this.clock.nowMs() && goesFirst) this.leave(waiter, failure('wait-timeout'))
    }
    const overdue = this.#end === undefined && loadEndsAtMs <= this.clock.nowMs()
    if (overdue) this.finish('timeout', failure('load-timeout'))
  }

  leave(waiter: Waiter, fate: unknown): void {
    if (waiter.fate !== 'open') return
    waiter.fate = fate
    if (this.#waiting().length === 0 && !this.#pinned) this.#end ??= 'cancelled'
  }

  finish(result: FlightResult, fate: unknown): void {
    this.#end = result
    for (const waiter of this.#waiting()) waiter.fate = fate
  }

  compare(): void {
    expect(this.waiters.map(({ watched }) => watched.fate)).toEqual(this.waiters.map(({ fate }) => fate))
    expect(this.#ends).toEqual(this.#end === undefined ? [] : [this.#end])
    const queryEnded = this.clock.nowMs() >= this.#startedAtMs + LIMITS.queryTimeoutMs
    if (this.#end === 'cancelled' || this.#end === 'timeout') expect(this.#flight.signal.aborted).toBe(true)
    if (this.#end === undefined) expect(this.#flight.signal.aborted).toBe(queryEnded)
  }

  #waiting(): Waiter[] {
    return this.waiters.filter(({ fate }) => fate === 'open')
  }
}

test('under every order of joins, hang-ups, limits and ends, each waiter has the end that is its own', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 25, size: 'max' }),
      fc.boolean(),
      fc.array(fc.double({ min: 0, max: 1.9, noNaN: true }), { minLength: 1, maxLength: 5 }),
      async (steps, pinned, early) => {
        const modelled = new Modelled(pinned, early)
        for (const step of steps) await modelled.take(step)
        await modelled.take({ do: 'start' })
        await modelled.take({ do: 'advance', turns: 40 })
        expect(modelled.clock.pendingTimers).toBe(0)
        const left = modelled.waiters.flatMap(({ request }) => getEventListeners(request.signal, 'abort'))
        expect(left).toEqual([])
      },
    ),
    { numRuns: 200 },
  )
})
