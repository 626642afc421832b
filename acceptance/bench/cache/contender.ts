/**
 * What the bench asks of a cache, ours or a peer's. Each key `k` carries one tag, `tag:k`, so that a peer without
 * tags of its own can delete the key instead.
 */
export interface Contender {
  readonly name: string
  /** The value of `key`: resident, or loaded once for all who ask at the same time. */
  get(key: string, load: () => Promise<string>): Promise<string>
  /** Puts out of date whatever carries `tag`. The bench waits for it before it takes a write for acknowledged. */
  invalidate(tag: string): Promise<void> | void
  close(): Promise<void>
}

/** A fresh, empty contender. */
export type Open = () => Contender

/** A cache whose hits need no promise. */
export interface SyncContender {
  readonly name: string
  /** A fresh cache that holds `entries`, and its look-up. */
  fill(entries: ReadonlyMap<string, string>): SyncGet | Promise<SyncGet>
}

export type SyncGet = (key: string) => string | undefined

// What every contender is opened with, so that each pays for a bound and for expiry, and neither is ever reached.
export const MAX_ENTRIES = 10_000
export const TTL_SECONDS = 600

const TAG_PREFIX = 'tag:'

export function tagOf(key: string): string {
  return `${TAG_PREFIX}${key}`
}

export function keyOf(tag: string): string {
  return tag.slice(TAG_PREFIX.length)
}

/**
 * `contenders` for each of `rounds`, with the number of the round, each round beginning with another: the machine is
 * shared, and whoever comes first pays for what the one before left behind.
 */
export function* alternating<Kind>(
  contenders: readonly Kind[],
  rounds: number,
): Generator<{ contender: Kind; round: number }> {
  for (let round = 0; round < rounds; round++) {
    const first = round % contenders.length
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      yield { contender, round }
    }
  }
}
