import { OutboundFailure, type PriceList, type PriceRequest, type PricingClient } from '../outbound/index.ts'

/**
 * Pricing for rehearsals: asks the service as any order does, and throws what it throws, but asks it for a SKU that it
 * may know; then it goes on with prices of its own. A service that does not know the SKU, or refuses it, has answered
 * all the same.
 */
export function rehearsedClient(client: Pick<PricingClient, 'fetch'>): Pick<PricingClient, 'fetch'> {
  return {
    fetch: async (request: PriceRequest): Promise<PriceList> => {
      try {
        await client.fetch({ ...request, skus: [SKU] })
      } catch (error) {
        if (!(error instanceof OutboundFailure) || error.kind !== 'refused') throw error
      }
      return { prices: new Map(request.skus.map(sku => [sku, 1])), unknown: [], bad: [], source: 'live' }
    },
  }
}

// Of the price list that comes along.
const SKU = 'SKU-1'
