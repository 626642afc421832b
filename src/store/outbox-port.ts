import type { Lookup, PurgeAsk, Purged } from './port.ts'

/**
 * Outbox (B4): what the relay may ask of the store. Events are claimed under a lease with a fencing token, so that two
 * relays never work on one event at once, and one that has slept past its lease can change nothing any more. Every
 * driver passes the suite in `test/contracts/outbox.contract.ts`.
 *
 *   pending ──claim()──▶ claimed ──settle(): not named──▶ delivered ──purge()──▶ gone
 *   claimed ──settle(): retry──▶ waiting, until dueAtMs ──claim()──▶ claimed
 *   claimed ──settle(): dead──▶ dead ──redrive()──▶ waiting
 *   claimed ──lease over, and another claim()──▶ as before the claim, and due
 *
 * Per order in order: an event is not claimed while an earlier one of its order is neither delivered nor in the same
 * claim. Found behind such a one it is looked at again soon, or when that is due; behind a dead one it becomes dead
 * itself, so that a redrive brings both in order. Whoever settles keeps to the same: behind an event of a claim that it
 * names or keeps, it does so with the others of that order.
 */
export interface Outbox {
  /**
   * The oldest events that are due, at most `limit` (from 1), for `leaseMs`. Those that were claimed before come by the
   * moment they fell due, and take half of the claim at most, yet one, while fresh ones wait. Sees every write
   * acknowledged before the call. `unavailable` may have claimed some that their lease then holds back.
   */
  claim(ask: ClaimAsk): Promise<ClaimVerdict>
  /**
   * Ends a claim, or the part of it that `keeps` does not name: every event of it that `exceptions` does not name is
   * delivered; what they name beside is passed over.
   * `stale` once the lease is over and another claim was asked for since: nothing has changed then. `unavailable` does
   * not tell whether anything has: settle again.
   */
  settle(settlement: Settlement): Promise<SettleVerdict>
  /** Dead events in the order of their making, after the sequence `after`. */
  findDead(
    page: { readonly limit: number; readonly after: number | undefined },
    signal: AbortSignal,
  ): Promise<Lookup<readonly DeadEvent[]>>
  /**
   * Dead events are due again, with all their attempts before them; dead ones of their orders before them come along,
   * or they would be dead again at once. Goes in steps, between which orders are written. How many those are;
   * undefined: unavailable, perhaps after some.
   */
  redrive(ids: readonly string[] | 'all', atMs: number): Promise<number | undefined>
  /** What is neither delivered nor dead, and what is dead: as of now, in one look. */
  measure(signal: AbortSignal): Promise<Lookup<Backlog>>
  /** Deletes delivered events. Undefined: unavailable. */
  purgeDelivered(ask: PurgeAsk): Promise<Purged | undefined>
}

/**
 * No lease and no delay lasts longer, in ms. What ends `SET_BACK_MS` later still was dated by a clock that has been set
 * back since, and counts as over; a smaller step, as clocks take them to keep the time, only makes it last longer.
 */
export const LONGEST_WAIT_MS = 3_600_000
export const SET_BACK_MS = 60_000

export interface ClaimAsk {
  readonly limit: number
  readonly leaseMs: number
  /** Now, in ms since the epoch: leases are between processes, and the wall clock is what those share. */
  readonly atMs: number
}

export type ClaimVerdict =
  | { readonly kind: 'claimed'; readonly token: number; readonly events: readonly OutboxEvent[] }
  /** Nothing is due; or so much must wait behind other events that the next look finds the rest. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'unavailable' }

export interface OutboxEvent {
  /** Rises in the order of commits. */
  readonly sequence: number
  /** UUIDv7, the same at each delivery. */
  readonly id: string
  readonly type: string
  /** The order's id. */
  readonly subject: string
  readonly tenant: string
  readonly traceparent: string
  /** When it was made, in ms since the epoch. */
  readonly atMs: number
  /** The order's JSON as it was then. */
  readonly json: string
  /** Deliveries that failed before. */
  readonly attempts: number
}

export interface Settlement {
  readonly token: number
  readonly atMs: number
  readonly exceptions: readonly SettleException[]
  /** Sequences with which the claim goes on, under its token and lease; none ends it. */
  readonly keeps?: readonly number[]
}

/** An event of a claim that was not delivered. */
export interface SettleException {
  readonly sequence: number
  /** Of which it has had so many now. */
  readonly attempts: number
  /** When it is due again, in ms since the epoch; undefined: never by itself. */
  readonly dueAtMs: number | undefined
  /** For the operator; nothing that a consumer said. */
  readonly reason: string
}

export type SettleVerdict = 'settled' | 'stale' | 'unavailable'

export interface DeadEvent {
  readonly sequence: number
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly tenant: string
  readonly atMs: number
  readonly attempts: number
  readonly reason: string
}

export interface Backlog {
  readonly pending: number
  readonly dead: number
  /** When the first pending event, by its sequence, was made, in ms since the epoch. */
  readonly oldestAtMs: number | undefined
}
