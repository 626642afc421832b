import { OutboundFailure, type PriceList, type PriceRequest, type PricingClient } from '../outbound/index.ts'

/**
 * Pricing for rehearsals: asks the service as any order does, and throws what it throws, but asks it for a SKU that it
 * may know; then it goes on with prices of its own. A service that does not know the SKU, or refuses it, has answered
 * all the same. One that is slow is not asked again: orders are answered in time in spite of it, so it is no reason to
 * stay away.
 */
export function rehearsedClient(client: Pick<PricingClient, 'fetch'>): Pick<PricingClient, 'fetch'> {
  let isSlow = false
  return {
    fetch: async (request: PriceRequest): Promise<PriceList> => {
      try {
        if (!isSlow) await client.fetch({ ...request, skus: [SKU] })
      } catch (error) {
        if (!(error instanceof OutboundFailure) || !HARMLESS.has(error.kind)) throw error
        isSlow = error.kind !== 'refused'
      }
      return { prices: new Map(request.skus.map(sku => [sku, 1])), unknown: [], bad: [], source: 'live' }
    },
  }
}

const HARMLESS: ReadonlySet<OutboundFailure['kind']> = new Set(['refused', 'timeout', 'budget'])
// Of the price list that comes along.
const SKU = 'SKU-1'
