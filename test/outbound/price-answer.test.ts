import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_UNIT_PRICE } from '../../src/domain/index.ts'
import { readPriceList } from '../../src/outbound/price-answer.ts'

const ASKED = { currency: 'USD', skus: ['A', 'B'] }
const GOOD = { sku: 'B', unitPrice: 7 }
const read = (answer: unknown, asked = ASKED) =>
  readPriceList(typeof answer === 'string' ? answer : JSON.stringify(answer), asked)

describe('an answer of pricing', () => {
  test.each<[string, string | object | null]>([
    ['nothing', ''],
    ['JSON cut off', '{"prices":[{"sku":"A","unitPrice":1},{"sku":"B","unitPrice":2}'],
    ['a number', '7'],
    ['a text', '"prices"'],
    ['null', null],
    ['a list', [{ sku: 'A', unitPrice: 1 }]],
    ['no prices', { unknown: ['A', 'B'] }],
    ['prices that are no list', { prices: { A: 1, B: 2 } }],
    ['unknown that is no list', { prices: [GOOD], unknown: 'A' }],
    ['unknown that is null', { prices: [GOOD], unknown: null }],
    ['another currency', { currency: 'EUR', prices: [GOOD, { sku: 'A', unitPrice: 1 }] }],
    ['no currency that there is', { currency: null, prices: [GOOD, { sku: 'A', unitPrice: 1 }] }],
    ['nothing of what was asked', { prices: [{ sku: 'C', unitPrice: 1 }] }],
  ])('that is %s is a failure for all', (_name, answer) => {
    expect(() => read(answer)).toThrow(expect.objectContaining({ name: 'OutboundFailure', kind: 'failed' }))
  })

  const entry = (unitPrice: unknown, more: object = {}) => ({
    prices: [GOOD, { sku: 'A', unitPrice, ...more }],
  })
  test.each<[string, object | string]>([
    ['leaves it out', { prices: [GOOD] }],
    ['says it twice', { prices: [GOOD, { sku: 'A', unitPrice: 1 }, { sku: 'A', unitPrice: 1 }] }],
    ['says it with and without a price', { prices: [GOOD, { sku: 'A' }, { sku: 'A', unitPrice: 1 }] }],
    ['prices it and calls it unknown', { prices: [GOOD, { sku: 'A', unitPrice: 1 }], unknown: ['A'] }],
    ['prices it badly and calls it unknown', { prices: [GOOD, { sku: 'A', unitPrice: -1 }], unknown: ['A'] }],
    ['prices it below zero', entry(-1)],
    ['prices it in fractions', entry(1.5)],
    ['prices it beyond exact sums', entry(MAX_UNIT_PRICE + 1)],
    ['prices it beyond numbers', '{"prices":[{"sku":"B","unitPrice":7},{"sku":"A","unitPrice":1e999}]}'],
    ['prices it in words', entry('1')],
    ['prices it at null', entry(null)],
    ['prices it with a list', entry([1])],
    ['prices it at true', entry(true)],
    ['prices it in another currency', entry(1, { currency: 'EUR' })],
    ['prices it in no currency', entry(1, { currency: null })],
    ['names it as it was not asked for', { prices: [GOOD, { sku: 'a', unitPrice: 1 }] }],
  ])('that %s is bad for that SKU alone', (_name, answer) => {
    expect(read(answer)).toEqual({ prices: new Map([['B', 7]]), unknown: [], bad: ['A'], source: 'live' })
  })

  test('gives the prices and what is unknown, and ignores all else', () => {
    const answer = {
      currency: 'USD',
      prices: [
        null,
        3,
        'A',
        [],
        { sku: 'C', unitPrice: -1 },
        { sku: '__proto__', unitPrice: 1 },
        { ...GOOD, currency: 'USD' },
      ],
      unknown: ['A', 'Z', 3, null, ['B']],
      more: true,
    }
    expect(read(answer)).toEqual({ prices: new Map([['B', 7]]), unknown: ['A'], bad: [], source: 'live' })
    expect(
      read({
        prices: [
          { sku: 'A', unitPrice: 0 },
          { sku: 'B', unitPrice: MAX_UNIT_PRICE },
        ],
      }),
    ).toEqual({
      prices: new Map([
        ['A', 0],
        ['B', MAX_UNIT_PRICE],
      ]),
      unknown: [],
      bad: [],
      source: 'live',
    })
    const hostile = { currency: 'USD', skus: ['__proto__', 'constructor'] }
    expect(read({ prices: [{ sku: '__proto__', unitPrice: 1 }] }, hostile)).toMatchObject({
      prices: new Map([['__proto__', 1]]),
      bad: ['constructor'],
    })
  })

  test('reaches only those concerned, whatever mixture of truths and lies it is', () => {
    const sku = fc.constantFrom<string>('A', 'B', 'C', 'D', 'E')
    const price = fc.oneof(
      { weight: 4, arbitrary: fc.nat() },
      fc.constantFrom<unknown>(-1, 0.5, MAX_UNIT_PRICE + 1, '1', null, undefined, {}),
    )
    const entries = fc.array(
      fc.record({ sku, unitPrice: price, currency: fc.constantFrom('USD', 'USD', 'USD', undefined, 'EUR') }),
    )
    fc.assert(
      fc.property(
        fc.uniqueArray(sku, { minLength: 1 }),
        entries,
        fc.array(sku, { maxLength: 3 }),
        (skus, prices, unknown) => {
          const isGood = ({ unitPrice, currency }: (typeof prices)[number]) =>
            Number.isInteger(unitPrice) &&
            Number(unitPrice) >= 0 &&
            Number(unitPrice) <= MAX_UNIT_PRICE &&
            currency !== 'EUR'
          const verdict = (sku: string) => {
            const [said, ...more] = prices.filter(one => one.sku === sku)
            if (said === undefined) return unknown.includes(sku) ? 'unknown' : 'bad'
            return more.length === 0 && isGood(said) && !unknown.includes(sku) ? said.unitPrice : 'bad'
          }
          const verdicts = new Map(skus.map(sku => [sku, verdict(sku)]))
          const having = (word: string) => skus.filter(sku => verdicts.get(sku) === word)
          const answer = { prices, unknown }
          if (having('bad').length === skus.length) {
            expect(() => read(answer, { currency: 'USD', skus })).toThrow()
            return
          }
          expect(read(answer, { currency: 'USD', skus })).toEqual({
            prices: new Map([...verdicts].filter(([, word]) => typeof word === 'number')),
            unknown: having('unknown'),
            bad: having('bad'),
            source: 'live',
          })
        },
      ),
      { numRuns: 1_000 },
    )
  })

  /** Counts the elements that `read` visits in lists; throws beyond `limit`, rather than go on for hours. */
  function stepsOf(read: () => unknown, limit: number): number {
    const iterators = Object.getPrototypeOf([][Symbol.iterator]()) as Iterator<unknown>
    const { next } = iterators
    let steps = 0
    iterators.next = function (this: Iterator<unknown>) {
      if (++steps > limit) throw new RangeError('too many steps')
      return next.call(this)
    }
    try {
      read()
    } finally {
      iterators.next = next
    }
    return steps
  }

  test.each([
    ['entries that are none', '0', 'prices'],
    ['one SKU, over and over', '{"sku":"B","unitPrice":1}', 'prices'],
    ['SKUs that were not asked for', '{"sku":"Z"}', 'prices'],
    ['nulls that are unknown', 'null', 'unknown'],
    ['one unknown SKU, over and over', '"B"', 'unknown'],
  ] as const)('of 0.25 MB of %s is read in one step for each', (_name, lie, where) => {
    const times = Math.floor((262_144 - 80) / (lie.length + 1))
    const lies = Array(times).fill(lie).join(',')
    const good = '{"sku":"A","unitPrice":1}'
    const text =
      where === 'prices' ? `{"prices":[${lies},${good}]}` : `{"prices":[${good}],"unknown":[${lies}]}`
    expect(text.length).toBeGreaterThan(260_000)
    expect(text.length).toBeLessThanOrEqual(262_144)
    let price: number | undefined
    const steps = stepsOf(() => {
      price = read(text).prices.get('A')
    }, times + 100)
    expect(price).toBe(1)
    // It went through the list at all, and once.
    expect(steps).toBeGreaterThanOrEqual(times)
  })

  test('is read in a time that grows with its length, and not with the square of it', () => {
    const timeToRead = (entries: number) => {
      const text = `{"prices":[${'0,'.repeat(entries)}{"sku":"A","unitPrice":1}]}`
      const startMs = performance.now()
      expect(read(text).prices.get('A')).toBe(1)
      return performance.now() - startMs
    }
    const quickestOf5 = (entries: number) => Math.min(...Array.from({ length: 5 }, () => timeToRead(entries)))
    // Eight times the entries: some eight times the time if each is looked at once, 64 times if not.
    expect(quickestOf5(8_000) / Math.max(0.5, quickestOf5(1_000))).toBeLessThan(24)
  })
})
