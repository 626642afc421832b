import { Problem } from '../errors/index.ts'
import type { Lease } from '../lease/index.ts'
import { OutboundFailure } from '../outbound/index.ts'
import type { Prices } from './prices.ts'

/** Prices for an order: from the cache where they are fresh, from the pricing service for the rest. */
export interface PricingContext {
  readonly prices: Prices
  readonly commitReserveMs: number
}

export interface Quote {
  readonly prices: ReadonlyMap<string, number>
  /** `fallback` when any of them is only remembered. */
  readonly source: 'live' | 'fallback'
}

/** The prices of all `skus` if every one is at hand, at no cost; undefined otherwise. */
export function pricesAtHand(
  ctx: PricingContext,
  currency: string,
  skus: readonly string[],
): Quote | undefined {
  const prices = ctx.prices.peekAll(skus.map(sku => ({ currency, sku })))
  if (prices === undefined) return undefined
  return { prices: new Map(skus.map((sku, place) => [sku, prices[place] ?? 0])), source: 'live' }
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
): Promise<Quote> {
  const { lease, currency, skus, traceparent } = input
  const asks = skus.map(sku => ({ currency, sku }))
  const run = { endsAtMs: lease.deadlineMs - ctx.commitReserveMs, signal: lease.signal, traceparent }
  const answers = await ctx.prices.readBatch(asks, run).catch((error: unknown) => {
    throw asProblem(error, lease)
  })
  const prices = new Map<string, number>()
  const unknown: number[] = []
  let source: Quote['source'] = 'live'
  for (const [place, { value, passing }] of answers.entries()) {
    if (passing) source = 'fallback'
    if (value === undefined) unknown.push(place)
    else prices.set(skus[place] ?? '', value)
  }
  if (unknown.length > 0) throw unknownSkus(unknown)
  return { prices, source }
}

/** Too slow is 504, since we stopped waiting; failing or shed is 503, since waiting would not have helped. */
function asProblem(error: unknown, lease: Lease): unknown {
  if (!(error instanceof OutboundFailure)) return error
  if (error.kind === 'timeout' || error.kind === 'budget') {
    return new Problem('budget-exhausted', { budgetMs: lease.budgetMs, stage: lease.stage, committed: 'no' })
  }
  return new Problem('pricing-unavailable')
}

function unknownSkus(places: readonly number[]): Problem {
  const errors = places.map(place => ({
    pointer: `/items/${place}/sku`,
    message: 'no price for this SKU',
  }))
  return new Problem('unknown-sku', { errors })
}
