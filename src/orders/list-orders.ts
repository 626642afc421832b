import type { OrderContext, OrderReply } from './context.ts'
import { asProblem, listReply } from './order-reads.ts'

/** At least one of `customerId` and `idempotencyKey`; both must fit when both are given. */
export interface ListInput {
  readonly customerId: string | undefined
  readonly idempotencyKey: string | undefined
  readonly limit: number
  /** The id of the last order already seen. */
  readonly before: string | undefined
}

/**
 * Orders of the caller's own tenant, newest first: a page of a customer's, or the one that was made under an
 * idempotency key.
 *
 * Throws `store-unavailable`, `budget-exhausted`, or the lease's end.
 */
export async function listOrders(ctx: OrderContext, input: ListInput): Promise<OrderReply> {
  ctx.lease.enter('read')
  try {
    return await (input.idempotencyKey === undefined ? page(ctx, input) : made(ctx, input))
  } catch (error) {
    throw asProblem(error, ctx)
  }
}

async function page({ services, lease, tenant, view }: OrderContext, input: ListInput): Promise<OrderReply> {
  const { customerId = '', limit, before } = input
  const reply = await services.reads.page.read({ tenant, view, customerId, limit, before }, lease.signal)
  return reply ?? listReply([], false)
}

/** Two reads: which order that is never changes, and the order itself is kept under its own tag. */
async function made({ services, lease, tenant, view }: OrderContext, input: ListInput): Promise<OrderReply> {
  const { reads } = services
  const { idempotencyKey: key = '', customerId, before } = input
  const made = await reads.made.read({ tenant, key }, lease.signal)
  if (made === undefined || (customerId ?? made.customerId) !== made.customerId) return listReply([], false)
  const { id } = made
  if (before !== undefined && id >= before) return listReply([], false)
  const order = await reads.order.read({ tenant, view, id }, lease.signal)
  return listReply(order === undefined ? [] : [{ id, ...order }], false)
}
