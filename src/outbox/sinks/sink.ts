import type { OutboxEvent } from '../../store/index.ts'

/**
 * Sink: where events go. Every sink passes the suite in `test/contracts/sink.contract.ts`. The relay calls it for one
 * event of an order at a time, for several orders at once.
 */
export interface Sink {
  /** Never throws; ends soon after the signal aborts. */
  deliver(event: OutboxEvent, signal: AbortSignal): Promise<Delivery>
  close(): Promise<void>
}

export type Delivery =
  | { readonly kind: 'delivered' }
  /** To be tried again, after `retryAfterMs` at the earliest if the consumer said so. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAfterMs?: number }
  /** Never to be tried again. */
  | { readonly kind: 'refused'; readonly reason: string }

export const DELIVERED: Delivery = Object.freeze({ kind: 'delivered' })
