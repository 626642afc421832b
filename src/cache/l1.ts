import { LRUCache } from 'lru-cache'
import type { Clock } from '../runtime/index.ts'

/**
 * First tier of the cache: values in memory, bounded in bytes, each for at most `ttlMs` on the monotonic
 * clock. The bookkeeping of recency and size is lru-cache's.
 */
export class L1<Value extends string | number> {
  readonly #entries: LRUCache<string, Value>

  constructor(options: { ttlMs: number; maxBytes: number }, clock: Clock) {
    this.#entries = new LRUCache({
      maxSize: options.maxBytes,
      ttl: options.ttlMs,
      // Zero asks the clock at every look instead of trusting a moment cached by a timer of its own.
      ttlResolution: 0,
      perf: { now: () => clock.nowMs() },
      sizeCalculation: (value, key) => ENTRY_BYTES + 2 * (key.length + String(value).length),
    })
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)
  }

  set(key: string, value: Value): void {
    this.#entries.set(key, value)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }
}

// What one entry costs beside its text: list links, time stamps and the map's own slot.
const ENTRY_BYTES = 128
