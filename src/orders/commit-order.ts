import { newId, type Order, orderEtag, viewOrderJson } from '../domain/index.ts'
import { Problem } from '../errors/index.ts'
import { drawRandom } from '../runtime/index.ts'
import type { KeyScope, OrderWrite, StoredReply } from '../store/index.ts'
import type { OrderContext, WrittenOrder } from './context.ts'

export interface OrderChange {
  readonly scope: KeyScope
  readonly fingerprint: string
  /** The order as it will be. */
  readonly order: Order
  readonly event: OrderWrite['event']['type']
  /** Of the reply. */
  readonly status: number
  /** Now, in ms since the epoch. */
  readonly atMs: number
}

/**
 * Writes an order, its key and its event in one transaction, and puts out of date what the cache holds of them once
 * that is durable: on the store's own path, which no lease, hang-up or shutdown cancels. Undefined when the order has
 * meanwhile got another version.
 *
 * Throws `idempotency-conflict`, `store-unavailable`, `budget-exhausted`, or the lease's end.
 */
export async function commitOrder(ctx: OrderContext, change: OrderChange): Promise<WrittenOrder | undefined> {
  const { store, ledger, reads } = ctx.services
  const { scope, order, fingerprint, atMs } = change
  const json = JSON.stringify(order)
  const reply = { status: change.status, location: `/v1/orders/${order.id}` }
  const write: OrderWrite = {
    ...scope,
    fingerprint,
    order: { id: order.id, customerId: order.customerId, status: order.status, version: order.version, json },
    event: { id: newId(atMs, drawRandom(16)), type: change.event, traceparent: ctx.traceparent },
    reply,
    atMs,
  }
  ctx.lease.enter('commit', ctx.services.commitReserveMs)
  const verdict = await store.commit(write, ctx.lease.signal, () => reads.forget(scope, order))
  switch (verdict.kind) {
    case 'created':
      ledger.created()
      return written(ctx, { ...reply, version: order.version, json }, false)
    case 'taken':
      return replay(ctx, scope, ledger.judge(verdict.reply, fingerprint))
    case 'outdated':
      reads.forget(scope, order)
      return undefined
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

/**
 * The first answer again. It acknowledges a write that another process may have made, which this cache then has not
 * heard of; so here, too, nothing older may be read afterwards.
 */
export function replay(ctx: OrderContext, scope: KeyScope, reply: StoredReply): WrittenOrder {
  ctx.services.reads.forget(scope, JSON.parse(reply.json) as Order)
  return written(ctx, reply, true)
}

function written(
  ctx: OrderContext,
  reply: { status: number; location: string; version: number; json: string },
  replayed: boolean,
): WrittenOrder {
  return {
    status: reply.status,
    location: reply.location,
    json: viewOrderJson(reply.json, ctx.view),
    etag: orderEtag(reply.version, ctx.view),
    replayed,
  }
}
