import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  OutboundFailure,
  type OutboundFailureKind,
  type PriceCall,
  type PriceList,
} from '../../src/outbound/call.ts'
import { fallback } from '../../src/outbound/fallback.ts'
import { createPriceShelf } from '../../src/pricing/index.ts'
import { Channel } from '../../src/runtime/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const MAX_AGE_MS = 300_000

function falling(fallbackMaxAgeMs = MAX_AGE_MS) {
  const clock = new VirtualClock()
  const served = new Channel<Record<string, never>>()
  const counts = { served: 0 }
  served.subscribe(() => counts.served++)
  const pricing = { answer: (): PriceList => listOf({}) }
  const shelf = createPriceShelf({ fallbackMaxAgeMs, maxBytes: 65_536 }, clock)
  const fetch = fallback(shelf, served)(async () => pricing.answer())
  const request = new AbortController()
  const ask = (skus: readonly string[], currency = 'USD') => {
    const call: PriceCall = {
      currency,
      skus,
      endsAtMs: 1e9,
      endedBy: 'lease',
      signal: request.signal,
      traceparent: '',
    }
    return fetch(call).catch((error: unknown) => error)
  }
  const learn = async (prices: Record<string, number>, currency?: string) => {
    pricing.answer = () => listOf(prices)
    await ask(Object.keys(prices), currency)
  }
  const breakDown = (error: unknown) => {
    pricing.answer = () => {
      throw error
    }
  }
  return { clock, request, pricing, counts, ask, learn, breakDown }
}

function listOf(prices: Record<string, number>, unknown: string[] = []): PriceList {
  return { prices: new Map(Object.entries(prices)), unknown, bad: [], source: 'live' }
}

describe('the fallback', () => {
  test.each<OutboundFailureKind>(['failed', 'refused', 'timeout', 'shed'])(
    'serves the last good prices after %s, says so and counts it',
    async kind => {
      const { counts, ask, learn, breakDown } = falling()
      await learn({ A: 1, B: 2 })
      await learn({ A: 3 })
      expect(counts.served).toBe(0)
      breakDown(new OutboundFailure(kind))
      expect(await ask(['A', 'B'])).toEqual({ ...listOf({ A: 3, B: 2 }), source: 'fallback' })
      expect(counts.served).toBe(1)
    },
  )

  test.each([
    ['a budget that ran out', new OutboundFailure('budget')],
    ['the end of the request', new Error('hung up')],
  ])('never hides %s', async (_name, error) => {
    const { counts, ask, learn, breakDown } = falling()
    await learn({ A: 1 })
    breakDown(error)
    expect(await ask(['A'])).toBe(error)
    expect(counts.served).toBe(0)
  })

  test.each<OutboundFailureKind>(['failed', 'refused', 'timeout', 'budget', 'shed'])(
    'never serves a request that has ended, after %s either, but ends it with its own reason',
    async kind => {
      const { request, counts, ask, learn, breakDown } = falling()
      await learn({ A: 1 })
      breakDown(new OutboundFailure(kind))
      const reason = new Error('hung up')
      request.abort(reason)
      expect(await ask(['A'])).toBe(reason)
      expect(counts.served).toBe(0)
    },
  )

  test('serves all or nothing, in its own currency', async () => {
    const { counts, ask, learn, breakDown } = falling()
    await learn({ A: 1 })
    const failure = new OutboundFailure('failed')
    breakDown(failure)
    expect(await ask(['A', 'B'])).toBe(failure)
    expect(await ask(['A'], 'EUR')).toBe(failure)
    expect(counts.served).toBe(0)
  })

  test('serves no price older than fallbackMaxAgeMs, which serving does not make younger', async () => {
    const { clock, ask, learn, breakDown } = falling()
    await learn({ A: 1 })
    const failure = new OutboundFailure('failed')
    breakDown(failure)
    for (let served = 0; served < 3; served++) {
      clock.advance(MAX_AGE_MS / 3)
      expect(await ask(['A'])).toMatchObject({ source: 'fallback' })
    }
    // The wall may go where it likes.
    clock.setWallMs(0)
    clock.advance(1)
    expect(await ask(['A'])).toBe(failure)
  })

  test('with fallbackMaxAgeMs of 0 never serves', async () => {
    const { ask, learn, breakDown } = falling(0)
    await learn({ A: 1 })
    const failure = new OutboundFailure('failed')
    breakDown(failure)
    expect(await ask(['A'])).toBe(failure)
  })

  test('forgets what pricing now calls unknown', async () => {
    const { pricing, ask, learn, breakDown } = falling()
    await learn({ A: 1, B: 2 })
    pricing.answer = () => listOf({ B: 2 }, ['A'])
    expect(await ask(['A', 'B'])).toEqual(listOf({ B: 2 }, ['A']))
    const failure = new OutboundFailure('failed')
    breakDown(failure)
    expect(await ask(['A'])).toBe(failure)
    expect(await ask(['B'])).toMatchObject({ source: 'fallback' })
  })

  test('serves exactly what was said last, if that was a price and is not too old, whatever came before', async () => {
    const step = fc.record({
      passedMs: fc.nat({ max: MAX_AGE_MS / 2 }),
      skus: fc.uniqueArray(fc.constantFrom('A', 'B', 'C'), { minLength: 1 }),
      how: fc.constantFrom('price', 'unknown', 'failed', 'refused'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
        const { clock, pricing, ask, breakDown } = falling()
        const said = new Map<string, { price: number; atMs: number }>()
        for (const [price, { passedMs, skus, how }] of steps.entries()) {
          clock.advance(passedMs)
          const isFailure = how === 'failed' || how === 'refused'
          const failure = new OutboundFailure(isFailure ? how : 'shed')
          if (how === 'price')
            pricing.answer = () => listOf(Object.fromEntries(skus.map(sku => [sku, price])))
          if (how === 'unknown') pricing.answer = () => listOf({}, skus)
          if (isFailure) breakDown(failure)
          const outcome = await ask(skus)
          if (how === 'price') for (const sku of skus) said.set(sku, { price, atMs: clock.nowMs() })
          if (how === 'unknown') for (const sku of skus) said.delete(sku)
          if (!isFailure) continue
          const remembered = skus.filter(sku => clock.nowMs() - (said.get(sku)?.atMs ?? -1e9) <= MAX_AGE_MS)
          const prices = Object.fromEntries(remembered.map(sku => [sku, said.get(sku)?.price ?? -1]))
          if (remembered.length < skus.length) expect(outcome).toBe(failure)
          else expect(outcome).toEqual({ ...listOf(prices), source: 'fallback' })
        }
      }),
    )
  })
})
