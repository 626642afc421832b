import type { Outbox } from './outbox-port.ts'

/**
 * Store (B4): what the rest of Punctual may ask of a place that keeps orders. One transaction holds the
 * idempotency row, the order and the event, and its unique constraint on the key is the only judge of what is
 * new. Every driver passes the suite in `test/contracts/store.contract.ts`.
 *
 * No method outlives its signal by more than `settleGraceMs`. What can be foreseen comes back as a verdict, never
 * as an exception: an exception from a store is a fault of ours.
 */
export interface Store {
  /**
   * Writes everything in `write`, or nothing. The verdict is a fact: `created` means durable. The key is judged
   * first: where it is taken, the order's version does not matter.
   *
   * `onDurable` is for whoever must act on every durable write, as one who invalidates caches. It runs exactly once,
   * synchronously, before the promise resolves and whatever has become of the signal or the caller:
   * - when the write is durable: with `created`, and also when that comes after the caller was told `unknown`,
   *   during a close as well;
   * - when it can no longer be known whether it is, because the store lost what it had claimed: assume the worst.
   *
   * It never runs for a write that was withdrawn, taken, outdated or unavailable. What it throws changes no verdict
   * and is reported as trouble.
   */
  commit(write: OrderWrite, signal: AbortSignal, onDurable?: () => void): Promise<CommitVerdict>
  /** What is stored under an idempotency key. */
  findReply(scope: KeyScope, signal: AbortSignal): Promise<Lookup<StoredReply>>
  /** The newest version of an order, if this tenant has it; sees every write acknowledged before the call. */
  findOrder(tenant: string, id: string, signal: AbortSignal): Promise<Lookup<StoredOrder>>
  /**
   * A customer's orders in their newest versions, newest first: ids are time-ordered, so their order is the list's.
   * None is found as an empty list. Sees every write acknowledged before the call.
   */
  findOrders(
    tenant: string,
    customerId: string,
    page: OrdersPage,
    signal: AbortSignal,
  ): Promise<Lookup<readonly ListedOrder[]>>
  /** Deletes idempotency keys. Undefined: unavailable. */
  purgeKeys(ask: PurgeAsk): Promise<Purged | undefined>
  /** The events, for their delivery. */
  readonly outbox: Outbox
  /** What stands in the way of working normally; undefined when nothing does. */
  degraded(): string | undefined
  /** Finishes what was accepted, then lets go of everything. */
  close(): Promise<void>
}

/**
 * One step of deleting what is old. It looks at so many rows in the order of their making, whatever their age: looking
 * for old ones alone would go through all the others each time that there are fewer than the limit.
 */
export interface PurgeAsk {
  /** Now, and before which moment a row must have been made, in ms since the epoch. */
  readonly atMs: number
  readonly madeBeforeMs: number
  readonly limit: number
  /** Where the step before this one ended; 0 begins with the oldest. */
  readonly after: number
}

export interface Purged {
  readonly deleted: number
  /** Where to go on; undefined when what follows is too young, or nothing. */
  readonly next: number | undefined
}

/** An idempotency key belongs to one tenant and one operation. */
export interface KeyScope {
  readonly tenant: string
  readonly operation: 'orders.create' | 'orders.cancel'
  readonly key: string
}

/**
 * Version 1 makes the order. A higher one replaces the version just before it, of the same tenant and id; the
 * customer stays who it was.
 */
export interface OrderWrite extends KeyScope {
  /** SHA-256, hex, of the canonical request. */
  readonly fingerprint: string
  readonly order: ListedOrder & { readonly customerId: string; readonly status: string }
  /** The event's data is the order as written here. */
  readonly event: {
    readonly id: string
    readonly type: 'order.created' | 'order.cancelled'
    readonly traceparent: string
  }
  /** The reply's body is the order as written here. */
  readonly reply: { readonly status: number; readonly location: string }
  /** Milliseconds since the epoch. */
  readonly atMs: number
}

export interface StoredOrder {
  readonly version: number
  /** The order's JSON in the full view. */
  readonly json: string
}

export interface ListedOrder extends StoredOrder {
  readonly id: string
}

/** A part of a list: at most `limit` orders (a whole number from 1), with ids less than `before` when it is given. */
export interface OrdersPage {
  readonly limit: number
  readonly before: string | undefined
}

/** The first answer to a key, as it must be given again. */
export interface StoredReply {
  readonly fingerprint: string
  readonly status: number
  readonly location: string
  readonly version: number
  readonly json: string
}

export type CommitVerdict =
  /** This write is durable. */
  | { readonly kind: 'created' }
  /** The key was taken before; this is what it holds. Nothing of this write was stored. */
  | { readonly kind: 'taken'; readonly reply: StoredReply }
  /** The order is not at the version before this one; nothing of this write was stored. */
  | { readonly kind: 'outdated' }
  /** The signal ended before the store had claimed the write. Nothing was stored, and nothing will be. */
  | { readonly kind: 'withdrawn' }
  /** Claimed, but no verdict within the grace: it may or may not be durable. */
  | { readonly kind: 'unknown' }
  /** The store could not do it; nothing was acknowledged. */
  | { readonly kind: 'unavailable' }

export type Lookup<Found> =
  | { readonly kind: 'found'; readonly value: Found }
  | { readonly kind: 'absent' }
  /** The signal ended first. */
  | { readonly kind: 'withdrawn' }
  | { readonly kind: 'unavailable' }
