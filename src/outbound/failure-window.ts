import type { Clock } from '../runtime/index.ts'

/**
 * Failure window: how many calls went well and badly over the last `samplingSeconds`, in ten buckets on the
 * monotonic clock. A bucket is recognised by its number, so one that was filled before an idle hour is never
 * mistaken for a recent one.
 */
export class FailureWindow {
  readonly #bucketMs: number
  readonly #buckets: { number: number; good: number; bad: number }[]
  readonly #clock: Clock

  constructor(samplingSeconds: number, clock: Clock) {
    this.#clock = clock
    this.#bucketMs = (samplingSeconds * 1000) / BUCKETS
    this.#buckets = Array.from({ length: BUCKETS }, () => ({ number: -1, good: 0, bad: 0 }))
  }

  count(good: boolean): void {
    const number = this.#number()
    const bucket = this.#buckets[number % BUCKETS]
    if (bucket === undefined) return
    if (bucket.number !== number) Object.assign(bucket, { number, good: 0, bad: 0 })
    if (good) bucket.good++
    else bucket.bad++
  }

  /** Calls in the window, and the share of them that went badly (0 when there were none). */
  read(): { calls: number; failureRatio: number } {
    const oldest = this.#number() - BUCKETS + 1
    let good = 0
    let bad = 0
    for (const bucket of this.#buckets) {
      if (bucket.number < oldest) continue
      good += bucket.good
      bad += bucket.bad
    }
    const calls = good + bad
    return { calls, failureRatio: calls === 0 ? 0 : bad / calls }
  }

  clear(): void {
    for (const bucket of this.#buckets) Object.assign(bucket, { number: -1, good: 0, bad: 0 })
  }

  #number(): number {
    return Math.floor(this.#clock.nowMs() / this.#bucketMs)
  }
}

const BUCKETS = 10
