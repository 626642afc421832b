import { describe, expect, test } from 'vitest'
import { Cache, cacheChannels } from '../../src/cache/index.ts'
import { cacheOptions } from '../../src/cache/options.ts'
import { collapse } from '../../src/outbound/collapse.ts'
import type { PriceList, PricingClient } from '../../src/outbound/index.ts'
import { cachedPrices } from '../../src/pricing/index.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { pricedContext } from './priced-context.ts'

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`

function priced(options = {}) {
  const context = pricedContext(options)
  const { clock, ctx, leaseOf } = context
  const ask = (currency: string, ...skus: string[]) =>
    ctx.prices.readBatch(
      skus.map(sku => ({ currency, sku })),
      { signal: leaseOf().signal, endsAtMs: clock.nowMs() + 100, traceparent: TRACEPARENT },
    )
  return { ...context, ask }
}

const askedSkus = (requests: readonly { skus: readonly string[] }[]) => requests.map(({ skus }) => skus)

describe('prices', () => {
  test('of several SKUs are one call, and each is kept by itself', async () => {
    const { ctx, requests, stub, ask } = priced()
    stub.answer = async ({ skus }) => ({
      prices: new Map(skus.filter(sku => sku !== 'B').map((sku, index) => [sku, index])),
      unknown: ['B'],
      bad: [],
      source: 'live',
    })
    expect((await ask('USD', 'A', 'B', 'C')).map(({ value }) => value)).toEqual([0, undefined, 1])
    expect(askedSkus(requests)).toEqual([['A', 'B', 'C']])
    const held = ['A', 'B', 'C', 'D'].map(sku => ctx.prices.peek({ currency: 'USD', sku }))
    expect(held.map(loaded => loaded?.value)).toEqual([0, undefined, 1, undefined])
    expect(held.map(loaded => loaded !== undefined)).toEqual([true, true, true, false])
    expect(ctx.prices.peek({ currency: 'EUR', sku: 'A' })).toBeUndefined()
  })

  test('go out of date one by one, under price:<currency>:<sku>', async () => {
    const { cache, requests, ask } = priced()
    await ask('USD', 'A', 'B')
    await ask('EUR', 'A')
    cache.invalidate(['price:USD:A'])
    await ask('USD', 'A', 'B')
    await ask('EUR', 'A')
    expect(requests.map(({ currency, skus }) => [currency, ...skus])).toEqual([
      ['USD', 'A', 'B'],
      ['EUR', 'A'],
      ['USD', 'A'],
    ])
  })

  test('that are only remembered are handed out as such, and kept by nobody', async () => {
    const { ctx, stub, ask } = priced()
    stub.answer = async ({ skus }) => ({
      prices: new Map(skus.map(sku => [sku, 90])),
      unknown: [],
      bad: [],
      source: 'fallback',
    })
    expect(await ask('USD', 'A')).toEqual([{ value: 90, passing: true }])
    expect(ctx.prices.peek({ currency: 'USD', sku: 'A' })).toBeUndefined()
  })

  test('are asked for with the trace of the request, until its end, and under its signal', async () => {
    const { clock, ctx, requests, leaseOf } = priced()
    const { signal } = leaseOf()
    const run = { signal, endsAtMs: clock.nowMs() + 77, traceparent: TRACEPARENT }
    await ctx.prices.readBatch([{ currency: 'USD', sku: 'A' }], run)
    expect(requests[0]).toMatchObject({ neededByMs: run.endsAtMs, traceparent: TRACEPARENT })
    expect(requests[0]?.signal).toBe(signal)
  })

  test('that are read near their end are asked for anew for no request, with a trace of their own', async () => {
    const { clock, ctx, requests, stub, ask } = priced({
      refreshAheadRatio: 0.2,
      l1Seconds: 20,
      queryTimeoutMs: 75,
    })
    await ask('USD', 'A')
    clock.advance(16_000)
    stub.answer = async () => ({ prices: new Map([['A', 200]]), unknown: [], bad: [], source: 'live' })
    const asked = { currency: 'USD', sku: 'A' }
    expect(ctx.prices.peek(asked)?.value).toBe(100)
    await promisesSettled()
    expect(ctx.prices.peek(asked)?.value).toBe(200)
    expect(requests).toHaveLength(2)
    expect(requests[1]).toMatchObject({ currency: 'USD', skus: ['A'], neededByMs: clock.nowMs() + 75 })
    expect(requests[1]?.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
    expect(requests[1]?.traceparent).not.toBe(TRACEPARENT)
  })
})

test('a price that went out of date is asked for anew, even while an older call for it is in flight', async () => {
  const clock = new VirtualClock()
  const landings: PromiseWithResolvers<PriceList>[] = []
  const shared = collapse(clock)(() => {
    const landing = Promise.withResolvers<PriceList>()
    landings.push(landing)
    return landing.promise
  })
  const client: Pick<PricingClient, 'fetch'> = {
    fetch: ({ neededByMs, ...call }) => shared({ ...call, endsAtMs: neededByMs, endedBy: 'lease' }),
  }
  const cache = new Cache(cacheOptions.parse({}), { clock, channels: cacheChannels() })
  const prices = cachedPrices(cache, client)
  const ask = (...skus: string[]) => {
    const run = {
      signal: new AbortController().signal,
      endsAtMs: clock.nowMs() + 100,
      traceparent: TRACEPARENT,
    }
    return prices.readBatch(
      skus.map(sku => ({ currency: 'USD', sku })),
      run,
    )
  }
  const listOf = (price: number): PriceList => ({
    prices: new Map([['A', price]]),
    unknown: [],
    bad: [],
    source: 'live',
  })

  const before = ask('A')
  await promisesSettled()
  const along = ask('A')
  await promisesSettled()
  expect(landings).toHaveLength(1)
  cache.invalidate(['price:USD:A'])
  const after = ask('A')
  await promisesSettled()
  expect(landings).toHaveLength(2)
  landings[0]?.resolve(listOf(1))
  expect([await before, await along]).toEqual([
    [{ value: 1, passing: false }],
    [{ value: 1, passing: false }],
  ])
  expect(prices.peek({ currency: 'USD', sku: 'A' })).toBeUndefined()
  landings[1]?.resolve(listOf(2))
  expect(await after).toEqual([{ value: 2, passing: false }])
  expect(prices.peek({ currency: 'USD', sku: 'A' })?.value).toBe(2)
})
