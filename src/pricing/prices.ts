import type { Cache, CachedQuery } from '../cache/index.ts'
import type { PricingClient } from '../outbound/index.ts'
import { traceFrom } from '../runtime/index.ts'

/** One price, in minor units of its currency. */
export type Prices = CachedQuery<PriceAsked, number>

export interface PriceAsked {
  readonly currency: string
  readonly sku: string
}

/**
 * Prices through the cache, each under a tag of its own (`price:<currency>:<sku>`). A SKU that pricing does not know is
 * remembered as such; a price that is only remembered from before is handed out and not kept, so that the next order
 * asks again. All questions of one batch are in one currency.
 */
export function cachedPrices(cache: Cache, client: Pick<PricingClient, 'fetch'>): Prices {
  return cache.query({
    keyOf: ({ currency, sku }) => `price:v1:${currency}:${sku}`,
    tagsOf: ({ currency, sku }) => [`price:${currency}:${sku}`],
    load: async (asks, { endsAtMs, signal, fence, traceparent }) => {
      const list = await client.fetch({
        currency: asks[0]?.currency ?? '',
        skus: asks.map(({ sku }) => sku),
        neededByMs: endsAtMs,
        signal,
        fence,
        traceparent: traceparent ?? traceFrom(undefined).traceparent,
      })
      const passing = list.source === 'fallback'
      return asks.map(({ sku }) => ({ value: list.prices.get(sku), passing }))
    },
  })
}
