/**
 * Money is a whole number of the currency's minor unit (cents, yen). The bound keeps every order total exact:
 * 50 items × 1,000 pieces × 10^11 is 5 × 10^15, below 2^53.
 */
export const MAX_UNIT_PRICE = 100_000_000_000

/** True for a price that may appear in an order. */
export function isUnitPrice(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_UNIT_PRICE
}
