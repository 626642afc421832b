import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors/index.ts'
import { pricesAtHand, quote } from '../../src/pricing/index.ts'
import { COMMIT_RESERVE_MS, failing, pricedContext } from './priced-context.ts'

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`

function quoting(options = {}) {
  const context = pricedContext(options)
  const { ctx, leaseOf } = context
  const ask = (skus: readonly string[], { currency = 'USD', lease = leaseOf() } = {}) =>
    quote(ctx, { lease, traceparent: TRACEPARENT, currency, skus })
  return { ...context, ask }
}

const askedSkus = (requests: readonly { skus: readonly string[] }[]) => requests.map(({ skus }) => skus)

describe('a quote', () => {
  test('asks only for what is not fresh in the cache, until l1Seconds have passed', async () => {
    const { clock, requests, ask } = quoting()
    await ask(['A', 'B'])
    clock.advance(10_000)
    expect(await ask(['A', 'B', 'C'])).toEqual({
      prices: new Map(['A', 'B', 'C'].map(sku => [sku, 100])),
      source: 'live',
    })
    clock.advance(10_000)
    await ask(['A', 'B'])
    expect(askedSkus(requests)).toEqual([['A', 'B'], ['C']])
    clock.advance(1)
    await ask(['A', 'B', 'C'])
    expect(askedSkus(requests).at(-1)).toEqual(['A', 'B'])
  })

  test('keeps the prices of one currency from another', async () => {
    const { requests, ask } = quoting()
    await ask(['A'])
    await ask(['A'], { currency: 'EUR' })
    expect(requests.map(({ currency }) => currency)).toEqual(['USD', 'EUR'])
  })

  test('asks within what the lease leaves beside the commit, and under its signal', async () => {
    const { requests, leaseOf, ask } = quoting()
    const lease = leaseOf(120)
    await ask(['A'], { lease })
    expect(requests[0]?.neededByMs).toBe(lease.deadlineMs - COMMIT_RESERVE_MS)
    expect(requests[0]?.signal).toBe(lease.signal)
    expect(requests[0]?.traceparent).toBe(TRACEPARENT)
  })

  test('of unknown SKUs is refused, each with its pointer into the order, and keeps the prices it learnt', async () => {
    const { ctx, stub, ask } = quoting()
    await ask(['A'])
    stub.answer = async () => ({
      prices: new Map([['C', 300]]),
      unknown: ['B', 'D'],
      bad: [],
      source: 'live',
    })
    const error = await ask(['A', 'B', 'C', 'D']).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Problem)
    expect(error).toMatchObject({
      code: 'unknown-sku',
      status: 400,
      extensions: { errors: [{ pointer: '/items/1/sku' }, { pointer: '/items/3/sku' }] },
    })
    expect(pricesAtHand(ctx, 'USD', ['A', 'C'])).toEqual({
      prices: new Map([
        ['A', 100],
        ['C', 300],
      ]),
      source: 'live',
    })
  })

  test('that has remembered prices in it is a fallback, and keeps none of them for the next', async () => {
    const { ctx, requests, stub, ask } = quoting()
    await ask(['A'])
    stub.answer = async ({ skus }) => ({
      prices: new Map(skus.map(sku => [sku, 90])),
      unknown: [],
      bad: [],
      source: 'fallback',
    })
    const remembered = {
      prices: new Map([
        ['A', 100],
        ['B', 90],
      ]),
      source: 'fallback',
    }
    expect(await ask(['A', 'B'])).toEqual(remembered)
    expect(pricesAtHand(ctx, 'USD', ['B'])).toBeUndefined()
    expect(await ask(['A', 'B'])).toEqual(remembered)
    expect(askedSkus(requests)).toEqual([['A'], ['B'], ['B']])
    // What is fresh makes no fallback of a quote that is fresh throughout.
    expect(await ask(['A'])).toMatchObject({ source: 'live' })
  })

  test('remembers for negativeSeconds that a SKU is unknown, and still says where it stands', async () => {
    const { clock, requests, stub, ask } = quoting({ negativeSeconds: 2 })
    const { answer } = stub
    stub.answer = async ({ skus }) => ({ prices: new Map(), unknown: skus, bad: [], source: 'live' })
    await expect(ask(['A'])).rejects.toMatchObject({ code: 'unknown-sku' })
    stub.answer = answer
    clock.advance(2_000)
    await expect(ask(['B', 'A'])).rejects.toMatchObject({
      code: 'unknown-sku',
      extensions: { errors: [{ pointer: '/items/1/sku' }] },
    })
    expect(askedSkus(requests)).toEqual([['A'], ['B']])
    clock.advance(1)
    expect(await ask(['A'])).toEqual({ prices: new Map([['A', 100]]), source: 'live' })
  })

  test.each(['failed', 'refused', 'shed'] as const)('that %s is pricing-unavailable', async kind => {
    const { stub, ask } = quoting()
    stub.answer = failing(kind)
    const error = await ask(['A']).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'pricing-unavailable', status: 503, extensions: {} })
  })

  test.each(['timeout', 'budget'] as const)(
    'that ran out of time (%s) says where, and that nothing was stored',
    async kind => {
      const { stub, leaseOf, ask } = quoting()
      stub.answer = failing(kind)
      const lease = leaseOf(150)
      lease.enter('pricing')
      await expect(ask(['A'], { lease })).rejects.toMatchObject({
        code: 'budget-exhausted',
        status: 504,
        extensions: { budgetMs: 150, stage: 'pricing', committed: 'no' },
      })
    },
  )

  test('of a request that has ended fails with the very end of its lease', async () => {
    const { stub, leaseOf, ask } = quoting()
    const lease = leaseOf()
    stub.answer = async () => {
      lease.abandon()
      throw lease.signal.reason
    }
    expect(await ask(['A'], { lease }).catch((thrown: unknown) => thrown)).toBe(lease.ended)
  })
})

describe('pricesAtHand', () => {
  test('gives all or nothing, and asks nobody', async () => {
    const { clock, ctx, requests, ask } = quoting()
    expect(pricesAtHand(ctx, 'USD', ['A'])).toBeUndefined()
    await ask(['A', 'B'])
    expect(pricesAtHand(ctx, 'USD', ['B', 'A'])).toEqual({
      prices: new Map([
        ['B', 100],
        ['A', 100],
      ]),
      source: 'live',
    })
    expect(pricesAtHand(ctx, 'USD', ['A', 'C'])).toBeUndefined()
    expect(pricesAtHand(ctx, 'EUR', ['A'])).toBeUndefined()
    clock.advance(20_001)
    expect(pricesAtHand(ctx, 'USD', ['A', 'B'])).toBeUndefined()
    expect(requests).toHaveLength(1)
  })

  test('of a SKU that is unknown gives nothing, and leaves it to the quote to say so', async () => {
    const { ctx, stub, ask } = quoting()
    stub.answer = async ({ skus }) => ({ prices: new Map(), unknown: skus, bad: [], source: 'live' })
    await expect(ask(['A'])).rejects.toMatchObject({ code: 'unknown-sku' })
    expect(pricesAtHand(ctx, 'USD', ['A'])).toBeUndefined()
  })

  test('takes a price of zero for a price', async () => {
    const { ctx, stub, ask } = quoting()
    stub.answer = async () => ({ prices: new Map([['FREE', 0]]), unknown: [], bad: [], source: 'live' })
    await ask(['FREE'])
    expect(pricesAtHand(ctx, 'USD', ['FREE'])).toEqual({
      prices: new Map([['FREE', 0]]),
      source: 'live',
    })
  })
})
