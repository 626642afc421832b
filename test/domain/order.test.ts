import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  MAX_UNIT_PRICE,
  type Order,
  type OrderRequest,
  orderEtag,
  orderRequestSchema,
  priceOrder,
  viewOrderJson,
} from '../../src/domain/index.ts'

const NAME_UNITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-'

const name = fc.string({ unit: fc.constantFrom(...NAME_UNITS), minLength: 1, maxLength: 64 })
const currency = fc.stringMatching(/^[A-Z]{3}$/)
const reference = fc
  .array(fc.constantFrom(' ', '!', '~', 'a', '"', '\\', '<', 'é', 'ß', '漢', '😀', '\u00a0', '\u0301'), {
    minLength: 1,
    maxLength: 128,
  })
  .map(characters => characters.join(''))
const items = fc.uniqueArray(fc.record({ sku: name, quantity: fc.integer({ min: 1, max: 1_000 }) }), {
  selector: ({ sku }) => sku,
  minLength: 1,
  maxLength: 50,
})
const request: fc.Arbitrary<OrderRequest> = fc.record(
  { customerId: name, currency, items, reference },
  { requiredKeys: ['customerId', 'currency', 'items'] },
)

const VALID: OrderRequest = { customerId: 'c-1', currency: 'EUR', items: [{ sku: 'SKU-1', quantity: 1 }] }
const itemsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ sku: `SKU-${index}`, quantity: 1 }))
const withItem = (item: unknown) => ({ ...VALID, items: [item] })

describe('the order request', () => {
  test('takes every request within the bounds of the contract and changes nothing in it', () => {
    fc.assert(
      fc.property(request, valid => {
        expect(orderRequestSchema.parse(valid)).toEqual(valid)
      }),
    )
  })

  test.each<[string, unknown]>([
    ['a customerId of 64', { ...VALID, customerId: 'x'.repeat(64) }],
    ['every character a name may have', { ...VALID, customerId: 'azAZ09_.:-' }],
    ['50 items', { ...VALID, items: itemsOf(50) }],
    ['a quantity of 1,000', withItem({ sku: 'SKU-1', quantity: 1_000 })],
    ['a reference of 128 characters', { ...VALID, reference: 'x'.repeat(128) }],
    ['a reference of 128 characters outside the basic plane', { ...VALID, reference: '😀'.repeat(128) }],
    [
      'SKUs that differ only in case',
      {
        ...VALID,
        items: [
          { sku: 'a', quantity: 1 },
          { sku: 'A', quantity: 1 },
        ],
      },
    ],
    ['a SKU named like a member of every object', withItem({ sku: '__proto__', quantity: 1 })],
  ])('takes %s', (_, value) => {
    expect(orderRequestSchema.safeParse(value).error).toBeUndefined()
  })

  test.each<[string, unknown, (string | number)[]]>([
    ['nothing', undefined, []],
    ['null', null, []],
    ['an array', [VALID], []],
    ['a text', 'order', []],
    ['an unknown member', { ...VALID, note: 'x' }, []],
    [
      'an own member __proto__',
      JSON.parse('{"customerId":"c","currency":"EUR","items":[{"sku":"S","quantity":1}],"__proto__":{}}'),
      [],
    ],
    ['no customerId', { currency: VALID.currency, items: VALID.items }, ['customerId']],
    ['an empty customerId', { ...VALID, customerId: '' }, ['customerId']],
    ['a customerId of 65', { ...VALID, customerId: 'x'.repeat(65) }, ['customerId']],
    ['a customerId with a space', { ...VALID, customerId: 'a b' }, ['customerId']],
    ['a customerId that ends in a line break', { ...VALID, customerId: 'a\n' }, ['customerId']],
    ['a customerId with a slash', { ...VALID, customerId: 'a/b' }, ['customerId']],
    ['a customerId beyond ASCII', { ...VALID, customerId: 'é' }, ['customerId']],
    ['a customerId with NUL', { ...VALID, customerId: 'a\0' }, ['customerId']],
    ['a numeric customerId', { ...VALID, customerId: 1 }, ['customerId']],
    ['no currency', { customerId: VALID.customerId, items: VALID.items }, ['currency']],
    ['a currency in lower case', { ...VALID, currency: 'eur' }, ['currency']],
    ['a currency of two letters', { ...VALID, currency: 'EU' }, ['currency']],
    ['a currency of four letters', { ...VALID, currency: 'EURO' }, ['currency']],
    ['a currency that ends in a line break', { ...VALID, currency: 'EUR\n' }, ['currency']],
    ['a currency of letters beyond ASCII', { ...VALID, currency: 'ÉUR' }, ['currency']],
    ['no items', { customerId: VALID.customerId, currency: VALID.currency }, ['items']],
    ['an empty list of items', { ...VALID, items: [] }, ['items']],
    ['51 items', { ...VALID, items: itemsOf(51) }, ['items']],
    ['items that are an object', { ...VALID, items: { 0: VALID.items[0], length: 1 } }, ['items']],
    ['an item that is null', withItem(null), ['items', 0]],
    ['an item with an unknown member', withItem({ sku: 'S', quantity: 1, unitPrice: 1 }), ['items', 0]],
    ['an item without a SKU', withItem({ quantity: 1 }), ['items', 0, 'sku']],
    ['an empty SKU', withItem({ sku: '', quantity: 1 }), ['items', 0, 'sku']],
    ['a SKU of 65', withItem({ sku: 'x'.repeat(65), quantity: 1 }), ['items', 0, 'sku']],
    ['an item without a quantity', withItem({ sku: 'S' }), ['items', 0, 'quantity']],
    ['a quantity of 0', withItem({ sku: 'S', quantity: 0 }), ['items', 0, 'quantity']],
    ['a negative quantity', withItem({ sku: 'S', quantity: -1 }), ['items', 0, 'quantity']],
    ['a quantity of 1,001', withItem({ sku: 'S', quantity: 1_001 }), ['items', 0, 'quantity']],
    ['a quantity of one and a half', withItem({ sku: 'S', quantity: 1.5 }), ['items', 0, 'quantity']],
    ['a quantity as text', withItem({ sku: 'S', quantity: '1' }), ['items', 0, 'quantity']],
    [
      'a quantity that is not a number',
      withItem({ sku: 'S', quantity: Number.NaN }),
      ['items', 0, 'quantity'],
    ],
    [
      'a quantity beyond a double',
      withItem({ sku: 'S', quantity: Number.POSITIVE_INFINITY }),
      ['items', 0, 'quantity'],
    ],
    ['a SKU twice', { ...VALID, items: [...itemsOf(2), { sku: 'SKU-0', quantity: 2 }] }, ['items', 2, 'sku']],
    ['an empty reference', { ...VALID, reference: '' }, ['reference']],
    ['a reference of 129', { ...VALID, reference: 'x'.repeat(129) }, ['reference']],
    ['a reference with a line break', { ...VALID, reference: 'a\nb' }, ['reference']],
    ['a reference with NUL', { ...VALID, reference: '\0' }, ['reference']],
    ['a reference with a delete character', { ...VALID, reference: '\x7f' }, ['reference']],
    ['a reference with a C1 control', { ...VALID, reference: '\x85' }, ['reference']],
    ['a reference with half a surrogate pair', { ...VALID, reference: '\ud83d' }, ['reference']],
    ['a reference with a line separator', { ...VALID, reference: '\u2028' }, ['reference']],
    ['a reference that turns the writing direction', { ...VALID, reference: 'a\u202eb' }, ['reference']],
    ['a reference that is null', { ...VALID, reference: null }, ['reference']],
  ])('refuses %s and names the place', (_, value, path) => {
    expect(orderRequestSchema.safeParse(value).error?.issues.map(issue => issue.path)).toEqual([path])
  })

  test('names every place that is wrong, not only the first', () => {
    const wrong = { customerId: '', currency: 'x', items: [{ sku: '', quantity: 0 }], reference: '' }
    const places = orderRequestSchema.safeParse(wrong).error?.issues.map(issue => issue.path.join('/'))
    expect(places?.sort()).toEqual(['currency', 'customerId', 'items/0/quantity', 'items/0/sku', 'reference'])
  })
})

const made = { id: 'id-1', at: '2026-01-01T00:00:00.000Z', pricing: 'live' } as const
const unitPrice = fc.oneof(fc.constantFrom(0, 1, MAX_UNIT_PRICE), fc.integer({ min: 0, max: MAX_UNIT_PRICE }))
const pricedOrder = fc
  .tuple(request, fc.array(unitPrice, { minLength: 50, maxLength: 50 }))
  .map(([request, unitPrices]) => {
    const prices = new Map(request.items.map(({ sku }, index) => [sku, unitPrices[index] ?? 0]))
    return { request, prices, order: priceOrder(request, prices, made) }
  })

describe('a priced order', () => {
  test('is exact to the last unit, checked against integers of any size', () => {
    fc.assert(
      fc.property(pricedOrder, ({ request, prices, order }) => {
        const lines = request.items.map(
          ({ sku, quantity }) => BigInt(prices.get(sku) ?? -1) * BigInt(quantity),
        )
        expect(order.items.map(({ lineTotal }) => BigInt(lineTotal))).toEqual(lines)
        expect(BigInt(order.total)).toBe(lines.reduce((sum, line) => sum + line, 0n))
        expect(Number.isSafeInteger(order.total)).toBe(true)
      }),
    )
  })

  test('is exact at every maximum at once', () => {
    const items = itemsOf(50).map(({ sku }) => ({ sku, quantity: 1_000 }))
    const prices = new Map(items.map(({ sku }) => [sku, MAX_UNIT_PRICE]))
    expect(priceOrder({ ...VALID, items }, prices, made).total).toBe(5_000_000_000_000_000)
    for (const { sku } of items) prices.set(sku, MAX_UNIT_PRICE - 1)
    expect(priceOrder({ ...VALID, items }, prices, made).total).toBe(4_999_999_999_950_000)
  })

  test('keeps the request, its order of items included, and is new in every respect', () => {
    fc.assert(
      fc.property(pricedOrder, ({ request, order }) => {
        const { items, total: _, ...rest } = order
        expect(items.map(({ sku, quantity }) => ({ sku, quantity }))).toEqual(request.items)
        expect(rest).toEqual({
          id: made.id,
          status: 'accepted',
          version: 1,
          customerId: request.customerId,
          currency: request.currency,
          pricing: 'live',
          ...('reference' in request && { reference: request.reference }),
          createdAt: made.at,
          updatedAt: made.at,
        })
      }),
    )
  })

  test('writes its members in the order of the contract', () => {
    const order = priceOrder({ ...VALID, reference: 'r' }, new Map([['SKU-1', 5]]), made)
    expect(JSON.stringify(order)).toBe(
      '{"id":"id-1","status":"accepted","version":1,"customerId":"c-1","currency":"EUR",' +
        '"items":[{"sku":"SKU-1","quantity":1,"unitPrice":5,"lineTotal":5}],"total":5,"pricing":"live",' +
        '"reference":"r","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}',
    )
  })

  test('is not made when a price is missing', () => {
    expect(() => priceOrder(VALID, new Map(), made)).toThrow(TypeError)
  })
})

describe('the view of an order', () => {
  test('full is the text itself', () => {
    fc.assert(
      fc.property(pricedOrder, ({ order }) => {
        const json = JSON.stringify(order)
        expect(viewOrderJson(json, 'full')).toBe(json)
      }),
    )
  })

  test('masked hides the customer and the reference, and changes nothing else, not even the order of members', () => {
    fc.assert(
      fc.property(pricedOrder, ({ order }) => {
        const masked = viewOrderJson(JSON.stringify(order), 'masked')
        const expected: Order = {
          ...order,
          customerId: '***',
          ...('reference' in order && { reference: '***' }),
        }
        expect(masked).toBe(JSON.stringify(expected))
      }),
    )
  })

  test('masked twice is the same bytes as masked once', () => {
    fc.assert(
      fc.property(pricedOrder, ({ order }) => {
        const once = viewOrderJson(JSON.stringify(order), 'masked')
        expect(viewOrderJson(once, 'masked')).toBe(once)
      }),
    )
  })

  test('masked leaves no trace of either secret in the text', () => {
    const secrets = { customerId: 'secret-customer', reference: 'secret "référence" \\ 漢' }
    const order = priceOrder({ ...VALID, ...secrets }, new Map([['SKU-1', 5]]), made)
    const masked = viewOrderJson(JSON.stringify(order), 'masked')
    expect(masked).not.toMatch(/secret|rence" /)
  })
})

describe('the ETag of an order', () => {
  test('is a strong validator of its own for each version and view', () => {
    const versions = [1, 2, 3, 10, 11, 100, Number.MAX_SAFE_INTEGER]
    const etags = versions.flatMap(version => [orderEtag(version, 'full'), orderEtag(version, 'masked')])
    expect(new Set(etags).size).toBe(etags.length)
    // RFC 9110, section 8.8.3: an opaque tag in quotes, without W/.
    for (const etag of etags) expect(etag).toMatch(/^"[\x21\x23-\x7e]+"$/)
    expect(orderEtag(1, 'full')).toBe('"v1"')
    expect(orderEtag(1, 'full')).toBe(orderEtag(1, 'full'))
  })
})
