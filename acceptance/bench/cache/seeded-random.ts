/** Numbers that look random and are the same for the same seed. Not for secrets. */
export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number
  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number
  oneOf<Item>(items: readonly Item[]): Item
}

/** Xorshift with 32 bits of state (Marsaglia, "Xorshift RNGs", 2003): plenty for a schedule. `seed` must not be 0. */
export function seededRandom(seed: number): Random {
  let state = seed | 0
  const next = (): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    next,
    below,
    oneOf: items => {
      const item = items[below(items.length)]
      if (item === undefined) throw new RangeError('nothing to choose from')
      return item
    },
  }
}
