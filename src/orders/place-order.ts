import { newId, type OrderRequest, orderEtag, priceOrder, viewOrderJson } from '../domain/index.ts'
import { Problem } from '../errors/index.ts'
import { fingerprint } from '../idempotency/index.ts'
import { type Prices, pricesAtHand, quote } from '../pricing/index.ts'
import { drawRandom } from '../runtime/index.ts'
import type { KeyScope, OrderWrite, StoredReply } from '../store/index.ts'
import type { OrderContext, OrderReply } from './context.ts'

export interface PlacedOrder extends OrderReply {
  readonly status: number
  readonly location: string
  /** True when this is the first answer again. */
  readonly replayed: boolean
}

/**
 * Places an order once per key: prices it, then writes order, key and event in one transaction.
 *
 * Throws `idempotency-conflict`, `unknown-sku`, `pricing-unavailable`, `store-unavailable`, `budget-exhausted`,
 * or the lease's end.
 */
export async function placeOrder(
  ctx: OrderContext,
  input: { key: string; request: OrderRequest },
): Promise<PlacedOrder> {
  const { ledger, pricing, commitReserveMs } = ctx.services
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
    if (known) return replay(ctx, known)
    ctx.lease.enter('pricing', commitReserveMs)
    quoted = await quote(pricing, {
      lease: ctx.lease,
      traceparent: ctx.traceparent,
      currency: request.currency,
      skus,
    })
  }

  ctx.lease.enter('commit', commitReserveMs)
  return commit(ctx, scope, print, request, quoted)
}

async function commit(
  ctx: OrderContext,
  scope: KeyScope,
  print: string,
  request: OrderRequest,
  { prices, source }: Prices,
): Promise<PlacedOrder> {
  const { store, ledger, clock } = ctx.services
  const atMs = clock.wallMs()
  const id = newId(atMs, drawRandom(16))
  const order = priceOrder(request, prices, { id, at: new Date(atMs).toISOString(), pricing: source })
  const location = `/v1/orders/${id}`
  const json = JSON.stringify(order)
  const write: OrderWrite = {
    ...scope,
    fingerprint: print,
    order: { id, customerId: order.customerId, status: order.status, version: order.version, json },
    event: { id: newId(atMs, drawRandom(16)), type: 'order.created', traceparent: ctx.traceparent },
    reply: { status: 201, location },
    atMs,
  }
  const verdict = await store.commit(write, ctx.lease.signal)
  switch (verdict.kind) {
    case 'created':
      ledger.created()
      return placed(ctx, { status: 201, location, version: order.version, json }, false)
    case 'taken':
      return replay(ctx, ledger.judge(verdict.reply, print))
    case 'withdrawn':
      throw ctx.lease.ended ?? new TypeError('a write was withdrawn under a lease that stands')
    case 'unknown':
      throw new Problem('budget-exhausted', {
        budgetMs: ctx.lease.budgetMs,
        stage: 'commit',
        committed: 'unknown',
      })
    case 'unavailable':
      throw new Problem('store-unavailable')
  }
}

function replay(ctx: OrderContext, reply: StoredReply): PlacedOrder {
  return placed(ctx, reply, true)
}

function placed(
  ctx: OrderContext,
  reply: { status: number; location: string; version: number; json: string },
  replayed: boolean,
): PlacedOrder {
  return {
    status: reply.status,
    location: reply.location,
    json: viewOrderJson(reply.json, ctx.view),
    etag: orderEtag(reply.version, ctx.view),
    replayed,
  }
}
