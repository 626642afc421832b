import { Cache, cacheChannels } from '../../src/cache/index.ts'
import { cacheOptions } from '../../src/cache/options.ts'
import { Lease } from '../../src/lease/index.ts'
import {
  OutboundFailure,
  type PriceList,
  type PriceRequest,
  type PricingClient,
} from '../../src/outbound/index.ts'
import { cachedPrices, type PricingContext } from '../../src/pricing/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

export const COMMIT_RESERVE_MS = 20

// Prices end at their moment and not by chance, and are loaded anew only when a quote finds none.
const STEADY = { jitterRatio: 0, refreshAheadRatio: 0 }

/** A pricing context with a client that answers as `answer` does: at 100 for every SKU, unless told otherwise. */
export function pricedContext(options: object = {}) {
  const clock = new VirtualClock()
  const requests: PriceRequest[] = []
  const stub = {
    answer: async ({ skus }: PriceRequest): Promise<PriceList> => ({
      prices: new Map(skus.map(sku => [sku, 100])),
      unknown: [],
      bad: [],
      source: 'live',
    }),
  }
  const client: Pick<PricingClient, 'fetch'> = {
    fetch: request => {
      requests.push(request)
      return stub.answer(request)
    },
  }
  const cache = new Cache(cacheOptions.parse({ ...STEADY, ...options }), { clock, channels: cacheChannels() })
  const ctx: PricingContext = { prices: cachedPrices(cache, client), commitReserveMs: COMMIT_RESERVE_MS }
  return {
    clock,
    cache,
    ctx,
    requests,
    stub,
    leaseOf: (budgetMs = 200) => new Lease(clock, budgetMs, 0, () => {}),
  }
}

/** Pricing fails in this way. */
export function failing(kind: OutboundFailure['kind']) {
  return async (): Promise<PriceList> => {
    throw new OutboundFailure(kind, { cause: new Error('connect ECONNREFUSED 10.0.0.7:5432') })
  }
}
