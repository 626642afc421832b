import type { Clock, Timer } from '../runtime/index.ts'
import { type Fetch, type Layer, OutboundFailure, type PriceCall, type PriceList } from './call.ts'

/**
 * Collapse: who asks for a price that is being fetched already joins that flight. There is one flight per currency
 * and SKU, so that calls share what they have in common and not only what is identical.
 *
 *   flight:  open ──answer──▶ landed          every waiter is told
 *            open ──last waiter leaves──▶ abandoned       the fetch is aborted
 *
 *   waiter:  waiting ──all its flights landed──▶ served
 *            waiting ──one of them failed──▶ failed       it leaves the others
 *            waiting ──its own moment or signal──▶ gone   it leaves all of them, and cancels nobody else's
 *
 * A flight lives as long as its latest waiter; it leaves the table when it ends, so the next caller starts anew
 * and no failure is ever handed to somebody who came after it. Nor is a price that was asked for before the moment
 * from which on the caller's fence wants it.
 */
export function collapse(clock: Clock): Layer {
  return next => {
    const flights = new Map<string, Flight>()
    return call =>
      new Promise((resolve, reject) => {
        call.signal.throwIfAborted()
        const waiter = new Waiter(call, clock, resolve, reject)
        for (const sku of call.skus) {
          const key = `${call.currency}:${sku}`
          waiter.join(joinable(flights, key, sku, call))
        }
        // Only now, so that a fetch that fails at once finds its waiter complete.
        waiter.launch(next)
      })
  }
}

/** The flight under `key`, unless it left too early for this call; then a new one, which newcomers find in its place. */
function joinable(flights: Map<string, Flight>, key: string, sku: string, call: PriceCall): Flight {
  const { now, notBefore } = call.fence ?? { now: 0, notBefore: 0 }
  const current = flights.get(key)
  if (current && current.leftAt >= notBefore) return current
  const flight: Flight = new Flight(sku, call, now, () => {
    if (flights.get(key) === flight) flights.delete(key)
  })
  flights.set(key, flight)
  return flight
}

class Flight implements PriceCall {
  readonly currency: string
  readonly skus: readonly string[]
  readonly traceparent: string
  /** On the count of the callers' fence. */
  readonly leftAt: number
  readonly waiters = new Set<Waiter>()
  readonly #controller = new AbortController()
  readonly #onEnd: () => void
  #state: 'new' | 'open' | 'ended' = 'new'

  constructor(sku: string, leader: PriceCall, leftAt: number, onEnd: () => void) {
    this.skus = [sku]
    this.leftAt = leftAt
    this.currency = leader.currency
    this.traceparent = leader.traceparent
    this.#onEnd = onEnd
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get endsAtMs(): number {
    return this.#latest()?.endsAtMs ?? 0
  }

  get endedBy(): PriceCall['endedBy'] {
    return this.#latest()?.endedBy ?? 'limit'
  }

  launch(next: Fetch): void {
    if (this.#state !== 'new') return
    this.#state = 'open'
    next(this).then(
      list => this.#land(waiter => waiter.onLanded(this, list)),
      (error: unknown) => this.#land(waiter => waiter.end(error)),
    )
  }

  /** The last one out aborts the fetch; a limit of ours is told as such, for it speaks of pricing. */
  leave(waiter: Waiter, limit: OutboundFailure | undefined): void {
    this.waiters.delete(waiter)
    if (this.waiters.size > 0 || this.#state === 'ended') return
    this.#end()
    this.#controller.abort(limit)
  }

  #land(tell: (waiter: Waiter) => void): void {
    if (this.#state === 'ended') return
    this.#end()
    for (const waiter of this.waiters) tell(waiter)
  }

  #end(): void {
    this.#state = 'ended'
    this.#onEnd()
  }

  #latest(): PriceCall | undefined {
    let latest: PriceCall | undefined
    for (const { call } of this.waiters) {
      if (latest === undefined || call.endsAtMs > latest.endsAtMs) latest = call
    }
    return latest
  }
}

class Waiter {
  readonly call: PriceCall
  readonly #clock: Clock
  readonly #resolve: (list: PriceList) => void
  readonly #reject: (error: unknown) => void
  readonly #flights = new Set<Flight>()
  readonly #prices = new Map<string, number>()
  readonly #unknown: string[] = []
  readonly #onAbort = () => this.end(this.call.signal.reason)
  readonly #timer: Timer
  #ended = false

  constructor(
    call: PriceCall,
    clock: Clock,
    resolve: (list: PriceList) => void,
    reject: (error: unknown) => void,
  ) {
    this.call = call
    this.#clock = clock
    this.#resolve = resolve
    this.#reject = reject
    call.signal.addEventListener('abort', this.#onAbort, { once: true })
    // One poll later, so that an answer which came in time is read first.
    const timeOut = () => {
      const failure = OutboundFailure.outOfTime(call)
      this.end(failure, failure.kind === 'timeout' ? failure : undefined)
    }
    this.#timer = clock.setTimer(
      () => clock.afterPoll(timeOut),
      Math.max(0, Math.ceil(call.endsAtMs - clock.nowMs())),
    )
  }

  join(flight: Flight): void {
    this.#flights.add(flight)
    flight.waiters.add(this)
  }

  launch(next: Fetch): void {
    for (const flight of [...this.#flights]) flight.launch(next)
  }

  onLanded(flight: Flight, list: PriceList): void {
    this.#flights.delete(flight)
    for (const [sku, price] of list.prices) this.#prices.set(sku, price)
    this.#unknown.push(...list.unknown)
    if (this.#flights.size > 0 || this.#ended) return
    this.#disarm()
    this.#resolve({ prices: this.#prices, unknown: this.#unknown, bad: [], source: list.source })
  }

  /** Leaves with an error; `limit` is that of its own call, if that is what ran out. */
  end(error: unknown, limit?: OutboundFailure): void {
    if (this.#ended) return
    this.#disarm()
    for (const flight of this.#flights) flight.leave(this, limit)
    this.#reject(error)
  }

  #disarm(): void {
    this.#ended = true
    this.#clock.clearTimer(this.#timer)
    this.call.signal.removeEventListener('abort', this.#onAbort)
  }
}
