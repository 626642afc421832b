import { LRUCache } from 'lru-cache'
import type { Clock } from '../runtime/index.ts'

/**
 * First tier of the cache: values in memory, bounded in bytes by estimate, each for its own time on the monotonic
 * clock. Recency, size and expiry are lru-cache's; what is here is the way from a tag to the values that carry it.
 */
export class L1<Value extends {}> {
  /** When the latest look was, in ms of the clock: `get` has asked it, and asking again would cost half as much as the look. */
  lookedAtMs = 0
  readonly #entries: LRUCache<string, Stored<Value>>
  /** For each tag, the keys that carry it; a map, so that `__proto__` is a tag like any other. */
  readonly #tagged = new Map<string, Set<string>>()

  constructor(options: { maxBytes: number }, clock: Clock) {
    this.#entries = new LRUCache({
      maxSize: options.maxBytes,
      // Every entry brings its own; without one here lru-cache would not keep the time at all.
      ttl: 1,
      // Zero asks the clock at every look instead of trusting a moment cached by a timer of its own.
      ttlResolution: 0,
      perf: {
        now: () => {
          this.lookedAtMs = clock.nowMs()
          return this.lookedAtMs
        },
      },
      dispose: ({ tags }, key) => this.#untag(key, tags),
    })
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  /** Keeps `value` for `ttlMs`, if it fits at all; what was under its key is gone either way. */
  set(key: string, value: Value, { bytes, ttlMs, tags = NO_TAGS }: Keeping): void {
    this.#entries.delete(key)
    for (const tag of tags) {
      const keys = this.#tagged.get(tag)
      if (keys) keys.add(key)
      else this.#tagged.set(tag, new Set([key]))
    }
    this.#entries.set(key, { value, tags }, { size: ENTRY_BYTES + 2 * key.length + bytes, ttl: ttlMs })
    if (!this.#entries.has(key)) this.#untag(key, tags)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  /** Deletes every value that carries the tag. */
  deleteTagged(tag: string): void {
    const keys = this.#tagged.get(tag)
    if (keys) for (const key of keys) this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  #untag(key: string, tags: readonly string[]): void {
    for (const tag of tags) {
      const keys = this.#tagged.get(tag)
      keys?.delete(key)
      if (keys?.size === 0) this.#tagged.delete(tag)
    }
  }
}

interface Keeping {
  /** Of the value's text. */
  readonly bytes: number
  readonly ttlMs: number
  readonly tags?: readonly string[]
}

interface Stored<Value> {
  readonly value: Value
  readonly tags: readonly string[]
}

const NO_TAGS: readonly string[] = []

// What one entry takes beside its key and text: lru-cache's slots, the entry itself, its tags and their way back.
const ENTRY_BYTES = 400
