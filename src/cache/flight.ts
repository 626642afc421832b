import type { Clock, Timer } from '../runtime/index.ts'
import { CacheFailure } from './failure.ts'

/**
 * Flight: one load of one key, and everyone who waits for it.
 *
 *   open ──land()──▶ ended        every waiter gets what was loaded
 *   open ──fail()──▶ ended        every waiter gets the error, whatever was thrown; nobody who comes later does
 *   open ──loadTimeoutMs──▶ ended        the same, with `load-timeout`, however long the loader goes on
 *   open ──last waiter leaves, unless pinned──▶ ended     the load is aborted, for nobody wants it
 *
 *   waiter:  waiting ──flight ended──▶ told
 *            waiting ──its signal, or waitTimeoutMs──▶ gone        and cancels nothing for the others
 *
 * At queryTimeoutMs the load's signal aborts, so that a loader that listens ends itself before it is given up on.
 * One timer serves all moments: waiters are as patient as each other, so the first to come is the first to go.
 */
export class Flight<Loaded> {
  /** The fence's count when its query started; before that, when it was made. */
  stamp: number
  readonly #deps: FlightDeps
  readonly #controller = new AbortController()
  readonly #waiters = new Set<Waiter<Loaded>>()
  #queryEndsAtMs = Number.POSITIVE_INFINITY
  #endsAtMs = Number.POSITIVE_INFINITY
  #timer: Timer | undefined
  #ended = false

  constructor(stamp: number, deps: FlightDeps) {
    this.stamp = stamp
    this.#deps = deps
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Whether its query has started. */
  get loading(): boolean {
    return this.#endsAtMs < Number.POSITIVE_INFINITY
  }

  get pinned(): boolean {
    return this.#deps.pinned
  }

  /** Aborts when the load should stop. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Waits along. Rejects with the load's error, `CacheFailure`, or the signal's reason. */
  join(signal: AbortSignal | undefined): Promise<Loaded> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const { clock, limits } = this.#deps
      const waiter: Waiter<Loaded> = {
        resolve,
        reject,
        untilMs: clock.nowMs() + limits.waitTimeoutMs,
        signal,
        handleEvent: () => this.#leave(waiter, signal?.reason),
      }
      this.#waiters.add(waiter)
      signal?.addEventListener('abort', waiter)
      if (this.#waiters.size === 1) this.#arm()
    })
  }

  /** The query starts: from here its limits run. Its own end is returned, on the monotonic clock. */
  startLoad(stamp: number): number {
    const { clock, limits } = this.#deps
    this.stamp = stamp
    const nowMs = clock.nowMs()
    this.#queryEndsAtMs = nowMs + limits.queryTimeoutMs
    this.#endsAtMs = nowMs + limits.loadTimeoutMs
    this.#arm()
    return this.#queryEndsAtMs
  }

  land(loaded: Loaded): void {
    this.#end('ok', waiter => waiter.resolve(loaded))
  }

  fail(error: unknown): void {
    this.#end(resultOf(error), waiter => waiter.reject(error))
  }

  #end(result: FlightResult, tell: (waiter: Waiter<Loaded>) => void): void {
    if (this.#ended) return
    this.#ended = true
    this.#disarm()
    this.#deps.onEnd(result)
    for (const waiter of this.#waiters) {
      waiter.signal?.removeEventListener('abort', waiter)
      tell(waiter)
    }
    this.#waiters.clear()
  }

  #leave(waiter: Waiter<Loaded>, reason: unknown): void {
    if (!this.#waiters.delete(waiter)) return
    waiter.signal?.removeEventListener('abort', waiter)
    waiter.reject(reason)
    if (this.#waiters.size > 0 || this.#deps.pinned) return
    this.#end('cancelled', () => {})
    this.#controller.abort(reason)
  }

  #arm(): void {
    this.#disarm()
    const [first] = this.#waiters
    const nextMs = Math.min(first?.untilMs ?? Number.POSITIVE_INFINITY, this.#queryEndsAtMs, this.#endsAtMs)
    if (this.#ended || nextMs === Number.POSITIVE_INFINITY) return
    const { clock } = this.#deps
    // One poll later, so that an answer which came in time is read first.
    const onTimer = () => clock.afterPoll(() => this.#onMoment())
    this.#timer = clock.setTimer(onTimer, Math.max(0, Math.ceil(nextMs - clock.nowMs())))
  }

  #disarm(): void {
    if (this.#timer !== undefined) this.#deps.clock.clearTimer(this.#timer)
    this.#timer = undefined
  }

  #onMoment(): void {
    if (this.#ended) return
    const nowMs = this.#deps.clock.nowMs()
    if (nowMs >= this.#endsAtMs) {
      const failure = new CacheFailure('load-timeout')
      this.fail(failure)
      return this.#controller.abort(failure)
    }
    if (nowMs >= this.#queryEndsAtMs) {
      this.#queryEndsAtMs = Number.POSITIVE_INFINITY
      this.#controller.abort(new CacheFailure('load-timeout'))
    }
    for (const waiter of this.#waiters) {
      if (waiter.untilMs > nowMs) break
      this.#deps.onWaitTimeout()
      this.#leave(waiter, new CacheFailure('wait-timeout'))
    }
    this.#arm()
  }
}

function resultOf(error: unknown): FlightResult {
  if (!(error instanceof CacheFailure)) return 'failed'
  return error.kind === 'refused' ? 'refused' : 'timeout'
}

export interface FlightDeps {
  readonly clock: Clock
  readonly limits: FlightLimits
  /** Flies on without waiters: a refresh serves those who come after it. */
  readonly pinned: boolean
  /** Once, before anyone who waits is told. */
  readonly onEnd: (result: FlightResult) => void
  readonly onWaitTimeout: () => void
}

export interface FlightLimits {
  readonly waitTimeoutMs: number
  readonly loadTimeoutMs: number
  readonly queryTimeoutMs: number
}

export type FlightResult = 'ok' | 'failed' | 'timeout' | 'refused' | 'cancelled'

/** Listens to its signal itself, which spares a closure for each reader of a storm. */
interface Waiter<Loaded> {
  readonly resolve: (loaded: Loaded) => void
  readonly reject: (error: unknown) => void
  readonly untilMs: number
  readonly signal: AbortSignal | undefined
  readonly handleEvent: () => void
}
