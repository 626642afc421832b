/**
 * Store (B4): what the rest of Punctual may ask of a place that keeps orders. One transaction holds the
 * idempotency row, the order and the event, and its unique constraint on the key is the only judge of what is
 * new. Every driver passes the suite in `test/contracts/store.contract.ts`.
 *
 * No method outlives its signal by more than `settleGraceMs`. What can be foreseen comes back as a verdict, never
 * as an exception: an exception from a store is a fault of ours.
 */
export interface Store {
  /** Writes everything in `write`, or nothing. The verdict is a fact: `created` means durable. */
  commit(write: OrderWrite, signal: AbortSignal): Promise<CommitVerdict>
  /** What is stored under an idempotency key. */
  findReply(scope: KeyScope, signal: AbortSignal): Promise<Lookup<StoredReply>>
  /** The newest version of an order, if this tenant has it; sees every write acknowledged before the call. */
  findOrder(tenant: string, id: string, signal: AbortSignal): Promise<Lookup<StoredOrder>>
  /** What stands in the way of working normally; undefined when nothing does. */
  degraded(): string | undefined
  /** Finishes what was accepted, then lets go of everything. */
  close(): Promise<void>
}

/** An idempotency key belongs to one tenant and one operation. */
export interface KeyScope {
  readonly tenant: string
  readonly operation: 'orders.create'
  readonly key: string
}

export interface OrderWrite extends KeyScope {
  /** SHA-256, hex, of the canonical request. */
  readonly fingerprint: string
  readonly order: StoredOrder & { readonly id: string; readonly customerId: string; readonly status: string }
  /** The event's data is the order as written here. */
  readonly event: { readonly id: string; readonly type: 'order.created'; readonly traceparent: string }
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
