import { isId, orderEtag, viewOrderJson } from '../domain/index.ts'
import { Problem } from '../errors/index.ts'
import type { OrderContext, OrderReply } from './context.ts'

/**
 * The newest version of an order of the caller's own tenant.
 *
 * Throws `not-found` (another tenant's order is not found either), `store-unavailable`, or the lease's end.
 */
export async function getOrder(ctx: OrderContext, input: { id: string }): Promise<OrderReply> {
  if (!isId(input.id)) throw new Problem('not-found')
  ctx.lease.enter('read')
  const found = await ctx.services.store.findOrder(ctx.tenant, input.id, ctx.lease.signal)
  switch (found.kind) {
    case 'found':
      return {
        json: viewOrderJson(found.value.json, ctx.view),
        etag: orderEtag(found.value.version, ctx.view),
      }
    case 'absent':
      throw new Problem('not-found')
    case 'withdrawn':
      throw ctx.lease.ended ?? new TypeError('a read was withdrawn under a lease that stands')
    case 'unavailable':
      throw new Problem('store-unavailable')
  }
}
