import type { Clock } from '../runtime/index.ts'
import type { Fence } from './fence.ts'
import { freeze } from './freeze.ts'
import type { HotKeys } from './hot-keys.ts'
import type { L1 } from './l1.ts'
import type { CacheOptions } from './options.ts'
import { shardOf } from './shards.ts'
import type { Tally } from './tally.ts'
import { textBytes } from './text-bytes.ts'
import type { TierGate } from './tier-gate.ts'

/** What a load brought for one question. */
export interface Loaded<Value> {
  /** Undefined: there is no such thing. */
  readonly value: Value | undefined
  /** Handed to those who wait for it now, and never kept. */
  readonly passing?: boolean
}

/** A value in memory. What readers get is `loaded`, which is frozen; the rest is bookkeeping. */
export interface Entry {
  readonly loaded: Loaded<unknown>
  readonly endsAtMs: number
  /** From this moment on a reader causes a refresh. */
  refreshAtMs: number
  /** Reads that the hot-key counters have not been told of. */
  untold: number
}

/** What is kept where, for how long, and under which key. Only the fence lets anything in. */
export class Tiers {
  readonly #parts: TiersParts

  constructor(parts: TiersParts) {
    this.#parts = parts
  }

  /** What memory holds under `key`; a read only when `countRead` follows. */
  look(key: string): Entry | undefined {
    return this.#parts.l1.get(key)
  }

  countRead(key: string, entry: Entry): void {
    const { hotKeys, tally } = this.#parts
    hotKeys.noteRead()
    if (entry.loaded.value === undefined) tally.l1.negative++
    else tally.l1.hit++
    if (++entry.untold === READS_TOLD_AT_ONCE) {
      entry.untold = 0
      hotKeys.observe(key, READS_TOLD_AT_ONCE)
    }
  }

  /** Whether the entry that was just looked at is near its end. */
  isAgeing(entry: Entry): boolean {
    return this.#parts.l1.lookedAtMs >= entry.refreshAtMs
  }

  /** A refresh has begun: should it bring nothing, the next one may after half of what is left. */
  postpone(entry: Entry): void {
    entry.refreshAtMs = (this.#parts.l1.lookedAtMs + entry.endsAtMs) / 2
  }

  /** The look brought nothing. */
  countMiss(key: string): void {
    const { hotKeys, tally } = this.#parts
    tally.l1.miss++
    hotKeys.noteRead()
    hotKeys.observe(key, 1)
  }

  /** Whether the second tier may be asked about what carries these tags. */
  reachSecond(tags: readonly string[]): boolean {
    return this.#parts.second?.gate.isOpenFor(tags) ?? false
  }

  /** The second tier's answer. Whatever goes wrong there is a miss, and without a ticket nothing is put there. */
  async askSecond(key: string, tags: readonly string[], signal: AbortSignal): Promise<FromSecond> {
    const { second, tally } = this.#parts
    const answer = await second?.gate.get(this.#secondKey(key), tags, signal)
    const loaded = answer?.kind === 'found' ? unpack(answer.text) : undefined
    if (loaded === undefined) tally.l2.miss++
    else if (loaded.value === undefined) tally.l2.negative++
    else tally.l2.hit++
    return { loaded, ticket: answer?.kind === 'missing' ? answer.ticket : undefined }
  }

  /** Keeps what was loaded, unless it passes, is out of date, or is too large. */
  keep(loaded: Loaded<unknown>, { key, tags, stamp, ticket }: Keeping): void {
    const { fence, l1, options, clock, tally, random, second } = this.#parts
    freeze(loaded)
    if (loaded.passing) return
    if (fence.hasMoved(tags, stamp)) {
      tally.fillsRefused++
      return
    }
    const { value } = loaded
    const absent = value === undefined
    const bytes = textBytes(value)
    const fullMs = (absent ? options.negativeSeconds : options.l1Seconds) * 1000
    if (bytes > options.maxEntryBytes || fullMs === 0) return l1.delete(key)
    const ttlMs = fullMs * (1 - options.jitterRatio * random())
    const endsAtMs = clock.nowMs() + ttlMs
    const aheadMs = absent ? 0 : options.refreshAheadRatio * ttlMs
    const refreshAtMs = aheadMs === 0 ? Number.POSITIVE_INFINITY : endsAtMs - aheadMs
    l1.set(key, { loaded, endsAtMs, refreshAtMs, untold: 0 }, { bytes, ttlMs, tags })
    if (second === undefined || ticket === undefined) return
    const secondMs = absent ? fullMs : options.l2Minutes * 60_000
    second.gate.put(this.#secondKey(key), pack(loaded), { tags, ttlMs: secondMs, ticket })
  }

  /** A hot key has copies, and this instance always uses the same one. */
  #secondKey(key: string): string {
    const { hotKeys, options, second } = this.#parts
    if (second === undefined || !hotKeys.isHot(key)) return key
    return `${key}#${shardOf(second.instance, options.hotKeys.replicas)}`
  }
}

export interface Keeping {
  readonly key: string
  readonly tags: readonly string[]
  /** The fence's count when the query started. */
  readonly stamp: number
  readonly ticket?: string | undefined
}

export interface FromSecond {
  readonly loaded: Loaded<unknown> | undefined
  readonly ticket: string | undefined
}

export interface TiersParts {
  readonly options: CacheOptions
  readonly clock: Clock
  readonly fence: Fence
  readonly l1: L1<Entry>
  readonly hotKeys: HotKeys
  readonly tally: Tally
  /** In [0, 1); spreads the moments at which entries end. */
  readonly random: () => number
  readonly second: { readonly gate: TierGate; readonly instance: string } | undefined
}

// Telling the counters costs as much as a look; of 16 reads one tells for all. What is untold when an entry leaves is
// lost, so a key's count is too low by 15 at most for each time it was filled.
const READS_TOLD_AT_ONCE = 16

// No value: there is no such thing.
const ABSENT = '{}'

function pack({ value }: Loaded<unknown>): string {
  return value === undefined ? ABSENT : JSON.stringify({ value })
}

/** Undefined for anything that `pack` has not made, or that is nested too deep to be frozen. */
function unpack(text: string): Loaded<unknown> | undefined {
  if (text === ABSENT) return { value: undefined }
  try {
    const packed: unknown = JSON.parse(text)
    if (typeof packed !== 'object' || packed === null || !('value' in packed)) return undefined
    return freeze({ value: packed.value })
  } catch {
    return undefined
  }
}
