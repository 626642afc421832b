import { isId } from '../domain/index.ts'
import { Problem } from '../errors/index.ts'
import type { OrderContext, OrderReply } from './context.ts'
import { asProblem } from './order-reads.ts'

/**
 * The newest version of an order of the caller's own tenant.
 *
 * Throws `not-found` (another tenant's order is not found either), `store-unavailable`, `budget-exhausted`, or the
 * lease's end.
 */
export async function getOrder(ctx: OrderContext, input: { id: string }): Promise<OrderReply> {
  const { services, lease, tenant, view } = ctx
  if (!isId(input.id)) throw new Problem('not-found')
  lease.enter('read')
  const asked = { tenant, view, id: input.id }
  const order = await services.reads.order.read(asked, lease.signal).catch((error: unknown) => {
    throw asProblem(error, ctx)
  })
  if (order === undefined) throw new Problem('not-found')
  return order
}
