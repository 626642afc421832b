import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isUnitPrice, MAX_UNIT_PRICE } from '../../src/domain/index.ts'

test('a unit price is any whole number from 0 to the maximum', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: MAX_UNIT_PRICE }), price => {
      expect(isUnitPrice(price)).toBe(true)
    }),
    { examples: [[0], [MAX_UNIT_PRICE]] },
  )
})

test.each([
  -1,
  0.5,
  MAX_UNIT_PRICE + 1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  '5',
  5n,
  null,
  undefined,
  [5],
  { valueOf: () => 5 },
])('%o is no unit price', value => {
  expect(isUnitPrice(value)).toBe(false)
})
