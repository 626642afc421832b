/**
 * Second tier: what the cache asks of a place outside the process that several instances share. Every driver passes
 * the suite in `test/contracts/second-tier.contract.ts`.
 *
 * It may fail, hang, or answer late: the cache takes that for a miss. What it must never do is keep a text past an
 * invalidation: a text counts only while none of its tags has been invalidated since the ticket that it was put
 * with was handed out, in whatever order calls arrive, from whatever instance.
 */
export interface SecondTier {
  /** How long the cache waits for an answer. */
  readonly timeoutMs: number
  /** The text under `key`, or the ticket to put one with. */
  get(key: string, tags: readonly string[], signal: AbortSignal): Promise<TierAnswer>
  /** Keeps `text` for `ttlMs`, unless one of `tags` has been invalidated since `ticket` was handed out. */
  put(key: string, text: string, put: TierPut): Promise<void>
  /** Puts out of date whatever carries one of `tags`, each copy of it. Resolves when that is certain. */
  invalidate(tags: readonly string[]): Promise<void>
  /** Puts everything out of date. */
  clear(): Promise<void>
  /** What other instances invalidate; `lost` when some of it may have been missed. Ends with the returned call. */
  listen(listener: TierListener): () => void
}

export type TierAnswer =
  | { readonly kind: 'found'; readonly text: string }
  | { readonly kind: 'missing'; readonly ticket: string }

export interface TierPut {
  readonly tags: readonly string[]
  readonly ttlMs: number
  readonly ticket: string
}

export interface TierListener {
  readonly invalidated: (tags: readonly string[]) => void
  readonly lost: () => void
}
