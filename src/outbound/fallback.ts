import type { Channel } from '../runtime/index.ts'
import { type Layer, OutboundFailure } from './call.ts'

/** Where the last good prices are remembered, each for as long as it may still serve. */
export interface PriceShelf {
  get(currency: string, sku: string): number | undefined
  set(currency: string, sku: string, price: number): void
  delete(currency: string, sku: string): void
}

/**
 * Fallback: when pricing brings nothing, the last good prices do, if every one that was asked for is remembered.
 * Pricing's refusals count as nothing too: the order has been validated, so a 4xx is between us and pricing.
 */
export function fallback(shelf: PriceShelf, served: Channel<Record<string, never>>): Layer {
  return next => async call => {
    try {
      const list = await next(call)
      for (const [sku, price] of list.prices) shelf.set(call.currency, sku, price)
      for (const sku of list.unknown) shelf.delete(call.currency, sku)
      return list
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason
      // A budget that ran out leaves nothing to serve within.
      if (!(error instanceof OutboundFailure) || error.kind === 'budget') throw error
      const prices = new Map<string, number>()
      for (const sku of call.skus) {
        const price = shelf.get(call.currency, sku)
        if (price === undefined) throw error
        prices.set(sku, price)
      }
      served.publish({})
      return { prices, unknown: [], bad: [], source: 'fallback' }
    }
  }
}
