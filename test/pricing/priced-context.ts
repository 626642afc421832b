import { L1 } from '../../src/cache/index.ts'
import { Lease } from '../../src/lease/index.ts'
import {
  OutboundFailure,
  type PriceList,
  type PriceRequest,
  type PricingClient,
} from '../../src/outbound/index.ts'
import type { PricingContext } from '../../src/pricing/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

export const COMMIT_RESERVE_MS = 20

/** A pricing context with a client that answers as `answer` does: at 100 for every SKU, unless told otherwise. */
export function pricedContext() {
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
  const client = {
    fetch: (request: PriceRequest) => {
      requests.push(request)
      return stub.answer(request)
    },
  } as unknown as PricingClient
  const ctx: PricingContext = {
    cache: new L1<number>({ ttlMs: 20_000, maxBytes: 65_536 }, clock),
    client,
    commitReserveMs: COMMIT_RESERVE_MS,
  }
  return { clock, ctx, requests, stub, leaseOf: (budgetMs = 200) => new Lease(clock, budgetMs, 0, () => {}) }
}

/** Pricing fails in this way. */
export function failing(kind: OutboundFailure['kind']) {
  return async (): Promise<PriceList> => {
    throw new OutboundFailure(kind, { cause: new Error('connect ECONNREFUSED 10.0.0.7:5432') })
  }
}
