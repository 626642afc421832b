import type { Channel, Clock, Timer } from '../runtime/index.ts'
import { ListenQueue } from './listen-queue.ts'

/**
 * Loop clock: how long may a request have waited before the loop saw it? While the loop is busy, bytes wait in
 * the kernel and no timestamp of ours exists (measured: loop blocked for 400 ms, the client saw 370 ms, the
 * server recorded 22). A beat bounds that wait from above: whatever was ready when a beat ran has been handled
 * once the poll after it is over, so a request seen now became ready after the last such beat.
 *
 *   beat at t ──poll──▶ clear = t        everything ready at t has been handled
 *   request at r: waited at most r − clear
 *
 * Two intervals are taken off: on an idle loop r − clear is anything up to that while the request waited for
 * nothing, and a lease that starts early by mistake would answer 504 before its time.
 */
export class LoopClock {
  #clearMs: number
  #beatMs: number
  #timer: Timer | undefined
  readonly #listenQueue: ListenQueue
  readonly #clock: Clock
  readonly #lag: Channel<{ lagMs: number }>

  constructor(clock: Clock, lag: Channel<{ lagMs: number }>) {
    this.#clock = clock
    this.#listenQueue = new ListenQueue(clock)
    this.#lag = lag
    this.#clearMs = clock.nowMs()
    this.#beatMs = this.#clearMs
    this.#arm()
  }

  /**
   * An upper bound, in ms, on what a request seen now has already waited; 0 on a loop that keeps up. `sinceMs` is
   * what `accepted` told of its connection.
   */
  hiddenWaitMs(sinceMs = this.#clearMs): number {
    return Math.max(0, this.#clock.nowMs() - Math.min(sinceMs, this.#clearMs) - TOLERANCE_MS)
  }

  /** For each new connection: see `ListenQueue`. */
  accepted(): (() => number | undefined) | undefined {
    return this.#listenQueue.accepted()
  }

  stop(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer)
    this.#timer = undefined
  }

  #arm(): void {
    this.#timer = this.#clock.setTimer(() => this.#beat(), BEAT_MS)
  }

  #beat(): void {
    this.#arm()
    const nowMs = this.#clock.nowMs()
    const lagMs = Math.max(0, nowMs - this.#beatMs - BEAT_MS)
    this.#beatMs = nowMs
    if (lagMs > TOLERANCE_MS) this.#listenQueue.stalled(this.#clearMs)
    this.#clock.afterPoll(() => {
      this.#clearMs = nowMs
    })
    this.#lag.publish({ lagMs })
  }
}

/**
 * 5 ms: 200 beats a second cost under 0.1 % of a core, and twice the interval, the error of the charge, is 5 %
 * of the default budget.
 */
const BEAT_MS = 5
const TOLERANCE_MS = 2 * BEAT_MS
