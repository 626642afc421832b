import type { Clock } from '../runtime/index.ts'

/**
 * Latency window: the percentiles of what was observed over the last 30 s, in bounded memory. A DDSketch (Masson,
 * Rim, Lee: "DDSketch: A fast and fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019): a
 * value is counted in bucket ⌈log_γ value⌉, so any percentile is right within 2 %. Six sketches of 5 s each take
 * turns and are merged when asked; together they hold 6 × 336 counters, 8 KB.
 */
export class LatencyWindow {
  readonly #clock: Clock
  readonly #slots = Array.from({ length: SLOTS }, () => ({ number: -1, counts: new Uint32Array(BUCKETS) }))
  #merged: { readonly at: number; readonly percentiles: Map<number, number> } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  observe(latencyMs: number): void {
    const number = this.#number()
    const slot = this.#slots[number % SLOTS]
    if (slot === undefined) return
    if (slot.number !== number) {
      slot.number = number
      slot.counts.fill(0)
    }
    const bucket = bucketOf(latencyMs)
    slot.counts[bucket] = (slot.counts[bucket] ?? 0) + 1
  }

  /**
   * The latency that the share `percentile` of the observations does not exceed, in ms; undefined below 20
   * observations. Worked out anew at most every 100 ms, since merging costs some microseconds.
   */
  percentileMs(percentile: number): number | undefined {
    const at = Math.floor(this.#clock.nowMs() / REFRESH_MS)
    if (this.#merged?.at !== at) this.#merged = { at, percentiles: new Map() }
    const { percentiles } = this.#merged
    const known = percentiles.get(percentile)
    if (known !== undefined) return known
    const read = this.#read(percentile)
    if (read !== undefined) percentiles.set(percentile, read)
    return read
  }

  #read(percentile: number): number | undefined {
    const oldest = this.#number() - SLOTS + 1
    const live = this.#slots.filter(slot => slot.number >= oldest)
    let total = 0
    const merged = new Uint32Array(BUCKETS)
    for (const { counts } of live) {
      for (const [bucket, count] of counts.entries()) {
        merged[bucket] = (merged[bucket] ?? 0) + count
        total += count
      }
    }
    if (total < MIN_OBSERVATIONS) return undefined
    let rank = Math.ceil(percentile * total)
    for (const [bucket, count] of merged.entries()) {
      rank -= count
      if (rank <= 0) return latencyOf(bucket)
    }
    return undefined
  }

  #number(): number {
    return Math.floor(this.#clock.nowMs() / SLOT_MS)
  }
}

const SLOTS = 6
const SLOT_MS = 5_000
const REFRESH_MS = 100
const MIN_OBSERVATIONS = 20
const RELATIVE_ERROR = 0.02
const GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
const LOG_GAMMA = Math.log(GAMMA)
// Below 0.1 ms nothing is told apart; the last bucket is 60 s, above every limit there is.
const MIN_MS = 0.1
const BUCKETS = Math.ceil(Math.log(60_000 / MIN_MS) / LOG_GAMMA) + 2

function bucketOf(latencyMs: number): number {
  if (latencyMs <= MIN_MS) return 0
  return Math.min(BUCKETS - 1, Math.ceil(Math.log(latencyMs / MIN_MS) / LOG_GAMMA))
}

/** The middle of a bucket, which is within the relative error of everything in it. */
function latencyOf(bucket: number): number {
  return bucket === 0 ? MIN_MS : (2 * MIN_MS * GAMMA ** bucket) / (GAMMA + 1)
}
