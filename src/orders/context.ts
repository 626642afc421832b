import type { View } from '../domain/index.ts'
import type { Ledger } from '../idempotency/index.ts'
import type { Lease } from '../lease/index.ts'
import type { PricingContext } from '../pricing/index.ts'
import type { Clock } from '../runtime/index.ts'
import type { Store } from '../store/index.ts'
import type { OrderReads } from './order-reads.ts'

/** What of a store the verbs need. */
export type OrderStore = Pick<Store, 'commit' | 'findReply' | 'findOrder' | 'findOrders'>

/** What the verbs work with, for as long as the process lives. */
export interface OrderServices {
  readonly store: OrderStore
  readonly ledger: Ledger
  readonly pricing: PricingContext
  readonly reads: OrderReads
  readonly clock: Clock
  readonly commitReserveMs: number
}

/** On whose behalf, and within which lease, a verb runs. */
export interface OrderContext {
  readonly services: OrderServices
  readonly lease: Lease
  readonly tenant: string
  readonly view: View
  readonly traceparent: string
}

/** An order, or a list of them, as it leaves a verb, already in the caller's view. */
export interface OrderReply {
  readonly json: string
  readonly etag: string
}

/** An order as the write that changed it leaves it. */
export interface WrittenOrder extends OrderReply {
  readonly status: number
  readonly location: string
  /** True when this is the first answer again. */
  readonly replayed: boolean
}
