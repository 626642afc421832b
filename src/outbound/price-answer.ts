import { isUnitPrice } from '../domain/index.ts'
import { hasRepeatedMembers } from '../runtime/index.ts'
import { OutboundFailure, type PriceCall, type PriceList } from './call.ts'

/**
 * Reads pricing's answer and believes nothing. Each SKU that was asked for is judged alone: it has one usable price,
 * or is said to be unknown, or is bad (missing, twice, both at once, negative, a fraction, beyond exact sums). What
 * was not asked for is ignored. An answer that is no price list at all, names
 * a member twice, or is in another currency, is a failure.
 */
export function readPriceList(text: string, asked: Pick<PriceCall, 'currency' | 'skus'>): PriceList {
  const answer = parseObject(text)
  const { currency, prices: entries, unknown: missing = [] } = answer
  const otherCurrency = currency !== undefined && currency !== asked.currency
  if (!Array.isArray(entries) || !Array.isArray(missing) || otherCurrency) throw new OutboundFailure('failed')

  const said = new Map<unknown, unknown[]>(asked.skus.map(sku => [sku, []]))
  for (const entry of entries as unknown[]) {
    const { sku, unitPrice, currency: own = asked.currency } = (entry ?? {}) as Record<string, unknown>
    said.get(sku)?.push(own === asked.currency ? unitPrice : undefined)
  }
  const saidUnknown = new Set<unknown>(missing)
  const prices = new Map<string, number>()
  const unknown: string[] = []
  const bad: string[] = []
  for (const sku of asked.skus) {
    const saidOfIt = said.get(sku) ?? []
    const [price] = saidOfIt
    if (saidOfIt.length === 0 && saidUnknown.has(sku)) unknown.push(sku)
    else if (saidOfIt.length === 1 && isUnitPrice(price) && !saidUnknown.has(sku)) prices.set(sku, price)
    else bad.push(sku)
  }
  if (bad.length === asked.skus.length) throw new OutboundFailure('failed')
  return { prices, unknown, bad, source: 'live' }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null
    if (isObject && !hasRepeatedMembers(text, value)) return value as Record<string, unknown>
  } catch (error) {
    throw new OutboundFailure('failed', { cause: error })
  }
  throw new OutboundFailure('failed')
}
