import { Cache, cacheChannels } from '../../src/cache/index.ts'
import { type CacheOptions, cacheOptions } from '../../src/cache/options.ts'
import { type OrderRequest, orderRequestSchema, type View } from '../../src/domain/index.ts'
import { idempotencyChannels, Ledger } from '../../src/idempotency/index.ts'
import { type OrderContext, type OrderServices, orderReads, placeOrder } from '../../src/orders/index.ts'
import { pricedContext } from '../pricing/priced-context.ts'
import { MemoryStore } from '../support/memory-store.ts'

export const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`

export const REQUEST: OrderRequest = orderRequestSchema.parse({
  customerId: 'customer-7',
  currency: 'USD',
  items: [
    { sku: 'A', quantity: 2 },
    { sku: 'B', quantity: 3 },
  ],
  reference: 'PO 4711',
})

/** The verbs' services over a store in memory and prices of 100, with a cache that is not refreshed ahead. */
export function orderServices(options: Partial<CacheOptions> = {}) {
  const { clock, ctx: pricing, requests, stub, leaseOf } = pricedContext()
  const store = new MemoryStore()
  const channels = idempotencyChannels()
  const decided: string[] = []
  channels.decided.subscribe(({ result }) => decided.push(result))
  const cache = new Cache(cacheOptions.parse({ jitterRatio: 0, refreshAheadRatio: 0, ...options }), {
    clock,
    channels: cacheChannels(),
  })
  const services: OrderServices = {
    store,
    ledger: new Ledger(store, channels),
    pricing,
    reads: orderReads(cache, store),
    clock,
    commitReserveMs: pricing.commitReserveMs,
  }
  const contextOf = ({ tenant = 'acme', view = 'full' as View, lease = leaseOf() } = {}): OrderContext => ({
    services,
    lease,
    tenant,
    view,
    traceparent: TRACEPARENT,
  })
  /** Places an order under `key`, and gives its id. */
  const place = async (key: string, changes: Partial<OrderRequest> = {}, tenant = 'acme') => {
    const { location } = await placeOrder(contextOf({ tenant }), { key, request: { ...REQUEST, ...changes } })
    return location.replace('/v1/orders/', '')
  }
  return { clock, store, cache, decided, priceRequests: requests, pricing: stub, leaseOf, contextOf, place }
}
