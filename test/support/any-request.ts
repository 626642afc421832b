import fc from 'fast-check'
import type { OrderRequest } from '../../src/domain/index.ts'

/** Valid requests of up to `maxItems` items, with or without what `reference` draws. */
export function anyRequest(maxItems: number, reference: fc.Arbitrary<string>): fc.Arbitrary<OrderRequest> {
  const name = fc.stringMatching(/^[A-Za-z0-9_.:-]{1,64}$/)
  const item = fc.record({ sku: name, quantity: fc.integer({ min: 1, max: 1_000 }) })
  return fc.record(
    {
      customerId: name,
      currency: fc.stringMatching(/^[A-Z]{3}$/),
      items: fc.uniqueArray(item, { selector: ({ sku }) => sku, minLength: 1, maxLength: maxItems }),
      reference,
    },
    { requiredKeys: ['customerId', 'currency', 'items'] },
  )
}
