import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { batch } from '../../src/outbound/batch.ts'
import { OutboundFailure, type PriceCall } from '../../src/outbound/call.ts'
import { Channel } from '../../src/runtime/index.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { priced } from './priced-client.ts'
import { type Received, say } from './pricing-server.ts'

const REFUSED = new OutboundFailure('refused')

describe('a batch that is refused', () => {
  /** Members that ask for one SKU each, of a pricing that refuses every call with one of `refused` in it. */
  function refusing(skus: readonly string[], refused: readonly string[]) {
    const clock = new VirtualClock()
    const asked: string[][] = []
    const refusals: PromiseWithResolvers<void>[] = []
    const fetch = batch(
      { windowMs: 3, maxSize: 50 },
      new Channel(),
      clock,
    )(async call => {
      const skus = [...call.skus]
      asked.push(skus)
      const prices = new Map(skus.map(sku => [sku, 5]))
      if (!skus.some(sku => refused.includes(sku))) return { prices, unknown: [], bad: [], source: 'live' }
      const refusal = Promise.withResolvers<void>()
      refusals.push(refusal)
      await refusal.promise
      throw REFUSED
    })
    const members = skus.map(sku => {
      const request = new AbortController()
      const { signal } = request
      const call: PriceCall = {
        currency: 'USD',
        skus: [sku],
        endsAtMs: 2_000,
        endedBy: 'lease',
        signal,
        traceparent: '',
      }
      return { request, outcome: fetch(call).catch((error: unknown) => error) }
    })
    const refuse = async () => {
      for (const { resolve } of refusals.splice(0)) resolve()
      await promisesSettled()
    }
    return { clock, asked, members, outcomes: members.map(({ outcome }) => outcome), refuse }
  }

  test('because of one SKU fails only who asked for it; the others, asked for alone, get their prices', async () => {
    const { clock, asked, outcomes, refuse } = refusing(['A', 'B', 'C'], ['B'])
    await clock.advanceAsync(3)
    await refuse()
    await refuse()
    expect(asked).toEqual([['A', 'B', 'C'], ['A'], ['B'], ['C']])
    const list = { unknown: [], bad: [], source: 'live' }
    expect(await Promise.all(outcomes)).toEqual([
      { ...list, prices: new Map([['A', 5]]) },
      REFUSED,
      { ...list, prices: new Map([['C', 5]]) },
    ])
  })

  test('and had one member is not asked for again', async () => {
    const { clock, asked, outcomes, refuse } = refusing(['A'], ['A'])
    await clock.advanceAsync(3)
    await refuse()
    expect(await Promise.all(outcomes)).toEqual([REFUSED])
    expect(asked).toEqual([['A']])
  })

  test('after one of two hung up is asked again for the other, who may not be the cause', async () => {
    const { clock, asked, members, outcomes, refuse } = refusing(['A', 'B'], ['B'])
    await clock.advanceAsync(3)
    members[1]?.request.abort(new Error('hung up'))
    await refuse()
    expect(await outcomes[0]).toMatchObject({ prices: new Map([['A', 5]]) })
    expect(asked).toEqual([['A', 'B'], ['A']])
  })
})

describe('a 4xx because of one SKU, over the wire,', () => {
  /** Pricing that refuses every request with BAD in it. */
  const refuseBad = (res: ServerResponse, { body }: Received) => {
    if (body.skus.includes('BAD')) res.writeHead(422).end('{"error":"secret"}')
    else say(res, { prices: body.skus.map(sku => ({ sku, unitPrice: 5 })) })
  }
  const bodies = (received: readonly Received[]) => {
    const [first, ...rest] = received.map(({ body }) => body.skus)
    return [first, ...rest.sort()]
  }

  test('reaches only the order that asked for it, and the others get their prices', async () => {
    const { fetchOf, received, attempts, calls } = await priced(refuseBad)
    const orders = [['SKU-1'], ['BAD'], ['SKU-2']]
    const [one, bad, two] = await Promise.allSettled(orders.map(skus => fetchOf(skus)))
    expect(one).toMatchObject({ value: { prices: new Map([['SKU-1', 5]]), source: 'live' } })
    expect(bad).toMatchObject({ reason: { name: 'OutboundFailure', kind: 'refused' } })
    expect(two).toMatchObject({ value: { prices: new Map([['SKU-2', 5]]), source: 'live' } })
    expect(bodies(received)).toEqual([['SKU-1', 'BAD', 'SKU-2'], ['BAD'], ['SKU-1'], ['SKU-2']])
    expect(attempts.toSorted()).toEqual(['failed', 'failed', 'won', 'won'])
    expect(calls.toSorted()).toEqual(['ok', 'ok', 'refused'])
  })

  test('fails the whole order that asked for it, and not who shares its other SKUs', async () => {
    const { fetchOf } = await priced(refuseBad)
    const [both, other] = await Promise.allSettled([fetchOf(['SKU-1', 'BAD']), fetchOf(['SKU-1'])])
    expect(both).toMatchObject({ reason: { kind: 'refused' } })
    expect(other).toMatchObject({ value: { prices: new Map([['SKU-1', 5]]), source: 'live' } })
  })

  test('leaves the order that asked for it at remembered prices, and the others at live ones', async () => {
    const remembered: Record<string, number> = { BAD: 7, 'SKU-1': 7 }
    const shelf = { get: (_: string, sku: string) => remembered[sku], set: () => {}, delete: () => {} }
    const { fetchOf } = await priced(refuseBad, { shelf })
    const [bad, other] = await Promise.all([fetchOf(['BAD']), fetchOf(['SKU-1'])])
    expect(bad).toEqual({ prices: new Map([['BAD', 7]]), unknown: [], bad: [], source: 'fallback' })
    expect(other).toEqual({ prices: new Map([['SKU-1', 5]]), unknown: [], bad: [], source: 'live' })
  })
})
