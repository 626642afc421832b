import { hash } from 'node:crypto'
import { type Cache, type CachedQuery, CacheFailure } from '../cache/index.ts'
import { orderEtag, type View, viewOrderJson } from '../domain/index.ts'
import { Problem } from '../errors/index.ts'
import type { KeyScope, Lookup, StoredOrder } from '../store/index.ts'
import type { OrderContext, OrderReply, OrderStore } from './context.ts'
import { cursorOf } from './cursor.ts'

/**
 * Reads of orders through the cache. A key names the tenant and the view beside the question, so that nobody is handed
 * what another tenant or a fuller view may see; who asks was authorised before.
 */
export interface OrderReads {
  /** One order, by its id. */
  readonly order: CachedQuery<OrderAsked, OrderReply>
  /** One page of a customer's orders. */
  readonly page: CachedQuery<PageAsked, OrderReply>
  /** What was made under an idempotency key: that never changes once it is there. */
  readonly made: CachedQuery<MadeAsked, { readonly id: string; readonly customerId: string }>
  /** Puts every answer out of date that `write` changes. */
  forget(write: KeyScope, order: { id: string; customerId: string }): void
}

export interface OrderAsked {
  readonly tenant: string
  readonly view: View
  readonly id: string
}

export interface PageAsked {
  readonly tenant: string
  readonly view: View
  readonly customerId: string
  readonly limit: number
  /** The last id of the page before. */
  readonly before: string | undefined
}

export interface MadeAsked {
  readonly tenant: string
  readonly key: string
}

export function orderReads(cache: Cache, store: OrderStore): OrderReads {
  return {
    order: cache.query({
      keyOf: ({ tenant, view, id }) => `order:v1:${tenant}:${view}:${id}`,
      tagsOf: ({ id }) => [orderTag(id)],
      load: eachOf(async ({ tenant, view, id }, signal) => {
        const order = found(await store.findOrder(tenant, id, signal), signal)
        return order && viewed(order, view)
      }),
    }),
    page: cache.query({
      // Hashed, so that its length is bounded and its colons mean nothing.
      keyOf: ({ tenant, view, customerId, limit, before = '' }) =>
        `orders:v1:${tenant}:${view}:${limit}:${before}:${hash('sha256', customerId)}`,
      tagsOf: ({ tenant, customerId }) => [customerTag(tenant, customerId)],
      load: eachOf(async ({ tenant, view, customerId, limit, before }, signal) => {
        // One more than asked for tells whether there is another page.
        const page = { limit: limit + 1, before }
        const orders = found(await store.findOrders(tenant, customerId, page, signal), signal) ?? []
        const shown = fitting(orders.slice(0, limit)).map(order => ({ id: order.id, ...viewed(order, view) }))
        return listReply(shown, orders.length > shown.length)
      }),
    }),
    made: cache.query({
      keyOf: ({ tenant, key }) => `made:v1:${tenant}:${hash('sha256', key)}`,
      tagsOf: ({ tenant, key }) => [keyTag(tenant, key)],
      load: eachOf(async ({ tenant, key }, signal) => {
        const reply = found(
          await store.findReply({ tenant, operation: 'orders.create', key }, signal),
          signal,
        )
        if (reply === undefined) return undefined
        const { id, customerId } = JSON.parse(reply.json) as { id: string; customerId: string }
        return { id, customerId }
      }),
    }),
    forget: ({ tenant, operation, key }, { id, customerId }) => {
      const tags = [orderTag(id), customerTag(tenant, customerId)]
      cache.invalidate(operation === 'orders.create' ? [...tags, keyTag(tenant, key)] : tags)
    },
  }
}

/**
 * A list as callers see it, from orders in their view. Its validator names each order's own, so any change of any of
 * them changes it.
 */
export function listReply(orders: readonly (OrderReply & { id: string })[], more: boolean): OrderReply {
  const last = more ? orders.at(-1) : undefined
  const nextCursor = last === undefined ? 'null' : `"${cursorOf(last.id)}"`
  const bodies = orders.map(({ json }) => json).join(',')
  const validators = orders.map(({ id, etag }) => id + etag).join(',')
  return {
    json: `{"orders":[${bodies}],"nextCursor":${nextCursor}}`,
    etag: `"${hash('sha256', `${nextCursor};${validators}`, 'base64url')}"`,
  }
}

// A page that is longer ends early: it is then small enough to be kept, and leaves in one go.
const MAX_PAGE_BYTES = 61_440

/** The first of the orders that fit into a page; one does in any case. */
function fitting<Order extends StoredOrder>(orders: readonly Order[]): readonly Order[] {
  let bytes = 0
  const end = orders.findIndex(({ json }, place) => {
    bytes += Buffer.byteLength(json) + 1
    return place > 0 && bytes > MAX_PAGE_BYTES
  })
  return end < 0 ? orders : orders.slice(0, end)
}

function viewed({ version, json }: StoredOrder, view: View): OrderReply {
  return { json: viewOrderJson(json, view), etag: orderEtag(version, view) }
}

/** What a failed read is to a caller. */
export function asProblem(error: unknown, { lease }: OrderContext): unknown {
  if (!(error instanceof CacheFailure)) return error
  if (error.kind === 'refused') return new Problem('store-unavailable')
  return new Problem('budget-exhausted', { budgetMs: lease.budgetMs, stage: lease.stage, committed: 'no' })
}

/** What a look-up found, undefined when there is nothing. Throws `store-unavailable`, or the signal's reason. */
export function found<Found>(lookup: Lookup<Found>, signal: AbortSignal): Found | undefined {
  switch (lookup.kind) {
    case 'found':
      return lookup.value
    case 'absent':
      return undefined
    case 'withdrawn':
      throw signal.aborted
        ? signal.reason
        : new TypeError('a look-up was withdrawn under a signal that stands')
    case 'unavailable':
      throw new Problem('store-unavailable')
  }
}

/** The store answers one question at a time, and gathers them by itself. */
function eachOf<Asked, Value>(load: (asked: Asked, signal: AbortSignal) => Promise<Value | undefined>) {
  return (asks: readonly Asked[], { signal }: { signal: AbortSignal }) =>
    Promise.all(asks.map(async asked => ({ value: await load(asked, signal) })))
}

const orderTag = (id: string) => `order:${id}`
const customerTag = (tenant: string, customerId: string) => `customer:${tenant}:${customerId}`
const keyTag = (tenant: string, key: string) => `key:${tenant}:${key}`
