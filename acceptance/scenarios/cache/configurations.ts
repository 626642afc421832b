import { WIDE_BUDGETS } from '../../support/bench.ts'
import type { Json } from '../../support/server.ts'

const cached = (cache: Json): Json => ({
  ...WIDE_BUDGETS,
  // No attempt but those that a check asks for, as it counts them.
  outbound: { ...WIDE_BUDGETS.outbound, hedge: { enabled: false } },
  cache: { ...WIDE_BUDGETS.cache, jitterRatio: 0, ...cache },
})

/** Nothing leaves the cache by its age while a check runs, and any page finds room. */
export const LASTING = cached({ l1Seconds: 500, negativeSeconds: 400, maxEntryBytes: 1_048_576 })

/** Everything leaves the cache after `SHORT_MS`, and nothing is loaded anew before. */
export const SHORT_LIVED = cached({ l1Seconds: 1, negativeSeconds: 0, refreshAheadRatio: 0 })
export const SHORT_MS = 1_010

/** After `SHORT_MS`, and for nine seconds more, what is read is loaded anew behind its reader. */
export const AHEAD = cached({ l1Seconds: 10, negativeSeconds: 0, refreshAheadRatio: 0.9 })

/** What is not there is remembered as such for `SHORT_MS`, what is there for much longer. */
export const SHORT_NEGATIVES = cached({ l1Seconds: 500, negativeSeconds: 1 })

/** A window of a second, in which 200 reads are evidence enough. */
export const HOT_KEYS = { share: 0.45, minSamples: 200, windowMs: 1_000, replicas: 4 }
export const SOON_HOT = cached({ l1Seconds: 500, negativeSeconds: 400, hotKeys: HOT_KEYS })

/** One load at once, and no room for more than a handful of orders in one entry. */
export const TIGHT = cached({ l1Seconds: 500, maxConcurrentLoads: 1, maxEntryBytes: 1_024 })
