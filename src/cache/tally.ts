/**
 * What the cache has done since it was made, as plain numbers that are read when somebody asks: a message to a
 * channel for each hit would cost as much as the hit.
 */
export class Tally {
  readonly l1 = { hit: 0, miss: 0, negative: 0 }
  readonly l2 = { hit: 0, miss: 0, negative: 0 }
  readonly loads = { ok: 0, failed: 0, timeout: 0, refused: 0 }
  readonly flights = { leader: 0, follower: 0 }
  waitTimeouts = 0
  fillsRefused = 0
  invalidations = 0
  /** Loads that run at this moment. */
  inFlight = 0
}
