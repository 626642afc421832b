import type { Clock, Timer } from '../runtime/index.ts'

/**
 * Lease: the one deadline of a request. An absolute moment on the monotonic clock, one timer, one signal; every
 * stage asks it what remains, and none keeps a timer of its own beside it.
 *
 *   open ──timer, or enter() with too little left──▶ expired      aborts the signal
 *   open ──abandon()──▶ abandoned                                 aborts the signal (the client hung up)
 *   open ──close()──▶ closed                                      answered; the signal stays quiet
 *
 * Every end is final and the first wins. Why it ended is told by the identity of `ended`, which is also the
 * signal's reason: asking the clock afterwards races with the timer and misjudges 1–3 % of expiries.
 */
export class Lease {
  readonly budgetMs: number
  /** The moment it ends, on the monotonic clock. */
  readonly deadlineMs: number
  /** The settled end, once expired or abandoned; rejections caused by it carry this very object. */
  ended: LeaseEnd | undefined
  #stage: Stage = 'admission'
  #state: LeaseState = 'open'
  #controller: AbortController | undefined
  #timer: Timer | undefined
  readonly #clock: Clock
  readonly #onEnd: (end: LeaseEnd) => void

  /**
   * `chargedMs` is what the request had already waited before it was seen. `onEnd` runs once, synchronously,
   * when the lease expires or is abandoned, before anything that listens to the signal.
   */
  constructor(clock: Clock, budgetMs: number, chargedMs: number, onEnd: (end: LeaseEnd) => void) {
    this.#clock = clock
    this.#onEnd = onEnd
    this.budgetMs = budgetMs
    this.deadlineMs = clock.nowMs() + budgetMs - chargedMs
    if (chargedMs >= budgetMs) return
    // Timers may fire up to 1 ms early (2 ms where the kernel's coarse clock ticks in ms): two more make
    // "expired" never a lie.
    this.#timer = clock.setTimer(() => this.#end('expired'), Math.ceil(budgetMs - chargedMs) + 2)
  }

  get state(): LeaseState {
    return this.#state
  }

  get stage(): Stage {
    return this.#stage
  }

  /** Milliseconds left; negative once the moment has passed. */
  remainingMs(): number {
    return this.deadlineMs - this.#clock.nowMs()
  }

  /** Aborts when the lease expires or is abandoned, with `ended` as its reason. Made on first use. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.ended) this.#controller.abort(this.ended)
    }
    return this.#controller.signal
  }

  /**
   * Begins a stage, or ends the request where it stands: a stage with less than `floorMs` left cannot finish,
   * so it is not started. Throws the `LeaseEnd` when the lease is over.
   */
  enter(stage: Stage, floorMs = 0): void {
    if (this.ended) throw this.ended
    this.#stage = stage
    if (this.#state === 'open' && this.remainingMs() <= floorMs) this.#end('expired')
    if (this.ended) throw this.ended
  }

  /** The client is gone. */
  abandon(): void {
    this.#end('abandoned')
  }

  /** The request is over; nothing is cancelled. */
  close(): void {
    if (this.#state !== 'open') return
    this.#state = 'closed'
    this.#disarm()
  }

  #end(cause: LeaseEnd['cause']): void {
    if (this.#state !== 'open') return
    this.#state = cause
    this.#disarm()
    this.ended = new LeaseEnd(cause, this.#stage)
    try {
      this.#onEnd(this.ended)
    } finally {
      this.#controller?.abort(this.ended)
    }
  }

  #disarm(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer)
    this.#timer = undefined
  }
}

export type LeaseState = 'open' | 'expired' | 'abandoned' | 'closed'

/** Where a request stands; the `stage` of `budget-exhausted`. */
export type Stage = 'admission' | 'body' | 'lookup' | 'pricing' | 'commit' | 'read'

/** Why a lease ended before its answer. Compare by identity with `lease.ended`. */
export class LeaseEnd extends Error {
  override readonly cause: 'expired' | 'abandoned'
  readonly stage: Stage

  constructor(cause: LeaseEnd['cause'], stage: Stage) {
    super(cause)
    this.name = 'LeaseEnd'
    this.cause = cause
    this.stage = stage
  }
}
