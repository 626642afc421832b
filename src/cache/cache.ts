import type { Clock } from '../runtime/index.ts'
import { CachedQuery, type Query, type QueryParts } from './cached-query.ts'
import type { CacheChannels } from './channels.ts'
import { Fence } from './fence.ts'
import { HotKeys } from './hot-keys.ts'
import { L1 } from './l1.ts'
import type { CacheOptions } from './options.ts'
import type { SecondTier } from './second-tier.ts'
import { Tally } from './tally.ts'
import { TierGate } from './tier-gate.ts'
import { type Entry, Tiers } from './tiers.ts'

/**
 * Cache (B5): repeated reads cost one load, and **no read that begins after a write was acknowledged returns an older
 * version**, provided that the writer invalidates the write's tags after its commit and before it acknowledges.
 *
 *   L1 ─miss▶ flight ─leader▶ second tier ─miss▶ L1 again ▶ load permit ▶ load ▶ fence ▶ both tiers
 *                └─follower▶ waits along, unless a tag has moved since the flight's query started
 *
 * All questions share one cache's bounds; each kind is asked through a `CachedQuery` of its own.
 */
export class Cache {
  readonly tally = new Tally()
  readonly #fence = new Fence()
  readonly #l1: L1<Entry>
  readonly #hotKeys: HotKeys
  readonly #gate: TierGate | undefined
  readonly #parts: QueryParts
  readonly #unlisten: (() => void) | undefined

  constructor(options: CacheOptions, deps: CacheDeps) {
    const { clock, channels, second } = deps
    this.#l1 = new L1(options, clock)
    this.#hotKeys = new HotKeys(options.hotKeys, clock, change => channels.hotKey.publish(change))
    this.#gate = second && new TierGate(second.tier, clock)
    const shared = { options, clock, fence: this.#fence, tally: this.tally }
    this.#parts = {
      ...shared,
      permits: { loads: 0, refreshes: 0 },
      tiers: new Tiers({
        ...shared,
        l1: this.#l1,
        hotKeys: this.#hotKeys,
        random: deps.random ?? Math.random,
        second: this.#gate && { gate: this.#gate, instance: second?.instance ?? '' },
      }),
    }
    this.#unlisten = second?.tier.listen({
      invalidated: tags => this.#forget(tags),
      lost: () => this.#forgetAll(),
    })
  }

  query<Asked, Value>(query: Query<Asked, Value>): CachedQuery<Asked, Value> {
    return new CachedQuery(query, this.#parts)
  }

  /**
   * Puts out of date whatever carries one of `tags`: stored, being loaded, or in the second tier. Call it after the
   * commit and before the acknowledgement. Done when it returns; it cannot be cancelled and never throws.
   */
  invalidate(tags: readonly string[]): void {
    this.#forget(tags)
    this.#gate?.invalidate(tags)
  }

  /** How many keys are hot. */
  get hotKeys(): number {
    return this.#hotKeys.count
  }

  close(): void {
    this.#unlisten?.()
    this.#gate?.close()
  }

  #forget(tags: readonly string[]): void {
    this.tally.invalidations++
    this.#fence.move(tags)
    for (const tag of tags) this.#l1.deleteTagged(tag)
  }

  #forgetAll(): void {
    this.tally.invalidations++
    this.#fence.moveAll()
    this.#l1.clear()
  }
}

export interface CacheDeps {
  readonly clock: Clock
  readonly channels: CacheChannels
  /** A tier outside the process, and what tells this instance from others that use it. */
  readonly second?: { readonly tier: SecondTier; readonly instance: string }
  /** In [0, 1); spreads the moments at which entries end. */
  readonly random?: () => number
}
