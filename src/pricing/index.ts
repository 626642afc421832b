export { type BundledPricing, startBundledPricing } from './bundled/service.ts'
export { type Prices, type PricingContext, pricesAtHand, quote } from './quote.ts'
export { createPriceShelf } from './shelf.ts'
