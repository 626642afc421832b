import { cancelled, isId, type Order } from '../domain/index.ts'
import { Problem } from '../errors/index.ts'
import { fingerprint } from '../idempotency/index.ts'
import type { KeyScope } from '../store/index.ts'
import { commitOrder, replay } from './commit-order.ts'
import type { OrderContext, WrittenOrder } from './context.ts'
import { getOrder } from './get-order.ts'
import { found } from './order-reads.ts'

/**
 * Cancels an order once per key: writes its next version, the key and the event in one transaction, provided that
 * the order still stands at the version that was read.
 *
 * Throws `not-found`, `order-state-conflict` when it is cancelled already, `idempotency-conflict`,
 * `store-unavailable`, `budget-exhausted`, or the lease's end.
 */
export async function cancelOrder(
  ctx: OrderContext,
  input: { key: string; id: string },
): Promise<WrittenOrder> {
  const { id } = input
  if (!isId(id)) throw new Problem('not-found')
  const scope: KeyScope = { tenant: ctx.tenant, operation: 'orders.cancel', key: input.key }
  const print = fingerprint({ id })
  // Each turn ends in an answer unless someone else has changed the order meanwhile; the lease bounds them all.
  for (;;) {
    const order = await currentOrder(ctx, id)
    if (order.status === 'cancelled') return alreadyCancelled(ctx, scope, print, order)
    const atMs = ctx.services.clock.wallMs()
    const written = await commitOrder(ctx, {
      scope,
      fingerprint: print,
      order: cancelled(order, new Date(atMs).toISOString()),
      event: 'order.cancelled',
      status: 200,
      atMs,
    })
    if (written !== undefined) return written
  }
}

async function currentOrder(ctx: OrderContext, id: string): Promise<Order> {
  const { json } = await getOrder({ ...ctx, view: 'full' }, { id })
  return JSON.parse(json) as Order
}

/** By this very request, whose answer is then given again, or by another one. Both became visible at once. */
async function alreadyCancelled(
  ctx: OrderContext,
  scope: KeyScope,
  print: string,
  order: Order,
): Promise<WrittenOrder> {
  const { store, ledger, reads } = ctx.services
  ctx.lease.enter('lookup')
  const reply = found(await store.findReply(scope, ctx.lease.signal), ctx.lease.signal)
  if (reply === undefined) {
    // Another process may have cancelled it: what we tell now must not be contradicted by what we held before.
    reads.forget(scope, order)
    throw new Problem('order-state-conflict')
  }
  return replay(ctx, scope, ledger.judge(reply, print))
}
