export { type BundledPricing, startBundledPricing } from './bundled/service.ts'
export { cachedPrices, type Prices } from './prices.ts'
export { type PricingContext, pricesAtHand, type Quote, quote } from './quote.ts'
export { createPriceShelf } from './shelf.ts'
