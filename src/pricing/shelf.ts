import { L1 } from '../cache/index.ts'
import type { PriceShelf } from '../outbound/index.ts'
import type { Clock } from '../runtime/index.ts'

/** Remembers the last good prices for `fallbackMaxAgeMs`, in a tier of their own; 0 remembers nothing. */
export function createPriceShelf(
  options: { fallbackMaxAgeMs: number; maxBytes: number },
  clock: Clock,
): PriceShelf {
  const { fallbackMaxAgeMs, maxBytes } = options
  if (fallbackMaxAgeMs === 0) return { get: () => undefined, set: () => undefined, delete: () => undefined }
  const prices = new L1<number>({ maxBytes }, clock)
  const kept = { bytes: PRICE_BYTES, ttlMs: fallbackMaxAgeMs }
  const keyOf = (currency: string, sku: string) => `${currency}:${sku}`
  return {
    get: (currency, sku) => prices.get(keyOf(currency, sku)),
    set: (currency, sku, price) => prices.set(keyOf(currency, sku), price, kept),
    delete: (currency, sku) => prices.delete(keyOf(currency, sku)),
  }
}

const PRICE_BYTES = 8
