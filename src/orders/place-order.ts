import { newId, type OrderRequest, priceOrder } from '../domain/index.ts'
import { fingerprint } from '../idempotency/index.ts'
import { pricesAtHand, quote } from '../pricing/index.ts'
import { drawRandom } from '../runtime/index.ts'
import type { KeyScope } from '../store/index.ts'
import { commitOrder, replay } from './commit-order.ts'
import type { OrderContext, WrittenOrder } from './context.ts'

/**
 * Places an order once per key: prices it, then writes order, key and event in one transaction.
 *
 * Throws `idempotency-conflict`, `unknown-sku`, `pricing-unavailable`, `store-unavailable`, `budget-exhausted`,
 * or the lease's end.
 */
export async function placeOrder(
  ctx: OrderContext,
  input: { key: string; request: OrderRequest },
): Promise<WrittenOrder> {
  const { ledger, pricing, commitReserveMs, clock } = ctx.services
  const { request } = input
  const scope: KeyScope = { tenant: ctx.tenant, operation: 'orders.create', key: input.key }
  const print = fingerprint(request)
  const skus = request.items.map(item => item.sku)

  // With every price at hand the look-up would cost a round trip between threads and spare nothing: the unique
  // constraint finds a replay just as well.
  let quoted = pricesAtHand(pricing, request.currency, skus)
  if (quoted === undefined) {
    ctx.lease.enter('lookup')
    const known = await ledger.recall(scope, print, ctx.lease.signal)
    if (known) return replay(ctx, scope, known)
    ctx.lease.enter('pricing', commitReserveMs)
    quoted = await quote(pricing, {
      lease: ctx.lease,
      traceparent: ctx.traceparent,
      currency: request.currency,
      skus,
    })
  }

  const atMs = clock.wallMs()
  const order = priceOrder(request, quoted.prices, {
    id: newId(atMs, drawRandom(16)),
    at: new Date(atMs).toISOString(),
    pricing: quoted.source,
  })
  const placed = await commitOrder(ctx, {
    scope,
    fingerprint: print,
    order,
    event: 'order.created',
    status: 201,
    atMs,
  })
  if (placed === undefined) throw new TypeError('a new order had a version before it')
  return placed
}
