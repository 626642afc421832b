import type { L1 } from '../cache/index.ts'
import { Problem } from '../errors/index.ts'
import type { Lease } from '../lease/index.ts'
import { OutboundFailure, type PricingClient } from '../outbound/index.ts'

/**
 * Prices for an order: from the cache where they are fresh, from the pricing service for the rest. The only
 * place where the two meet.
 */
export interface PricingContext {
  readonly cache: L1<number>
  readonly client: Pick<PricingClient, 'fetch'>
  readonly commitReserveMs: number
}

export interface Prices {
  readonly prices: ReadonlyMap<string, number>
  /** `fallback` when any of them is only remembered. */
  readonly source: 'live' | 'fallback'
}

/** The prices of all `skus` if every one is at hand, at no cost; undefined otherwise. */
export function pricesAtHand(
  ctx: PricingContext,
  currency: string,
  skus: readonly string[],
): Prices | undefined {
  const prices = new Map<string, number>()
  for (const sku of skus) {
    const price = ctx.cache.get(cacheKey(currency, sku))
    if (price === undefined) return undefined
    prices.set(sku, price)
  }
  return { prices, source: 'live' }
}

/**
 * Prices for all `skus`, within what the lease leaves beside the commit.
 *
 * Throws `unknown-sku`, `pricing-unavailable` when the service fails or is not to be bothered,
 * `budget-exhausted` when it was too slow, or the lease's end.
 */
export async function quote(
  ctx: PricingContext,
  input: { lease: Lease; traceparent: string; currency: string; skus: readonly string[] },
): Promise<Prices> {
  const { lease, currency, skus } = input
  const prices = new Map<string, number>()
  const missing = skus.filter(sku => {
    const price = ctx.cache.get(cacheKey(currency, sku))
    if (price !== undefined) prices.set(sku, price)
    return price === undefined
  })
  if (missing.length === 0) return { prices, source: 'live' }
  const fetched = await ctx.client
    .fetch({
      currency,
      skus: missing,
      neededByMs: lease.deadlineMs - ctx.commitReserveMs,
      signal: lease.signal,
      traceparent: input.traceparent,
    })
    .catch((error: unknown) => {
      throw asProblem(error, lease)
    })
  for (const [sku, price] of fetched.prices) {
    // What is only remembered is not fresh, and the next order asks again.
    if (fetched.source === 'live') ctx.cache.set(cacheKey(currency, sku), price)
    prices.set(sku, price)
  }
  if (fetched.unknown.length > 0) throw unknownSkus(skus, fetched.unknown)
  return { prices, source: fetched.source }
}

function cacheKey(currency: string, sku: string): string {
  return `price:v1:${currency}:${sku}`
}

/** Too slow is 504, since we stopped waiting; failing or shed is 503, since waiting would not have helped. */
function asProblem(error: unknown, lease: Lease): unknown {
  if (!(error instanceof OutboundFailure)) return error
  if (error.kind === 'timeout' || error.kind === 'budget') {
    return new Problem('budget-exhausted', { budgetMs: lease.budgetMs, stage: lease.stage, committed: 'no' })
  }
  return new Problem('pricing-unavailable')
}

function unknownSkus(skus: readonly string[], unknown: readonly string[]): Problem {
  const errors = unknown.map(sku => ({
    pointer: `/items/${skus.indexOf(sku)}/sku`,
    message: 'no price for this SKU',
  }))
  return new Problem('unknown-sku', { errors })
}
