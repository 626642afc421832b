import type { Clock } from '../runtime/index.ts'

/**
 * Release rate: how many permits came free, and how many callers were turned away, over the last one to two
 * seconds. Two buckets of a second each, so that counting costs an increment and forgetting costs nothing.
 */
export class ReleaseRate {
  #bucket = 0
  #firstReleaseMs = 0
  #released = { current: 0, previous: 0 }
  #refused = { current: 0, previous: 0 }
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
    this.#bucket = this.#now()
  }

  released(): void {
    this.#turn()
    if (this.#released.current + this.#released.previous === 0) this.#firstReleaseMs = this.#clock.nowMs()
    this.#released.current++
  }

  refused(): void {
    this.#turn()
    this.#refused.current++
  }

  /**
   * How long, in ms, until `waiting` requests and those refused lately would have been served at the rate just
   * measured; `fallbackMs` while nothing has been released to measure.
   */
  clearsInMs(waiting: number, fallbackMs: number): number {
    this.#turn()
    // n releases mark n − 1 intervals, counted from the first one that is still remembered.
    const intervals = this.#released.current + this.#released.previous - 1
    const windowMs = this.#clock.nowMs() - Math.max(this.#firstReleaseMs, (this.#bucket - 1) * BUCKET_MS)
    if (intervals < 1 || windowMs <= 0) return fallbackMs
    const refused = this.#refused.current + this.#refused.previous
    return ((waiting + refused) * windowMs) / intervals
  }

  #now(): number {
    return Math.floor(this.#clock.nowMs() / BUCKET_MS)
  }

  #turn(): void {
    const bucket = this.#now()
    if (bucket === this.#bucket) return
    const adjacent = bucket === this.#bucket + 1
    for (const counts of [this.#released, this.#refused]) {
      counts.previous = adjacent ? counts.current : 0
      counts.current = 0
    }
    this.#bucket = bucket
  }
}

const BUCKET_MS = 1000
