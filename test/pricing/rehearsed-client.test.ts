import { describe, expect, it } from 'vitest'
import { OutboundFailure, type OutboundFailureKind, type PriceRequest } from '../../src/outbound/index.ts'
import { rehearsedClient } from '../../src/pricing/index.ts'

const REQUEST: PriceRequest = {
  currency: 'USD',
  skus: ['WARM-UP-1', 'WARM-UP-2'],
  neededByMs: 100,
  signal: new AbortController().signal,
  traceparent: 'tp',
}
const PRICES = {
  prices: new Map([
    ['WARM-UP-1', 1],
    ['WARM-UP-2', 1],
  ]),
  unknown: [],
  bad: [],
  source: 'live',
}

function rehearsed(kind?: OutboundFailureKind) {
  const asked: (readonly string[])[] = []
  const client = rehearsedClient({
    fetch: async ({ skus }) => {
      asked.push(skus)
      if (kind) throw new OutboundFailure(kind)
      return { prices: new Map(), unknown: skus, bad: [], source: 'live' }
    },
  })
  return { asked, client }
}

describe('pricing for rehearsals', () => {
  it('asks for a SKU that the service may know, and goes on with prices of its own', async () => {
    const { client, asked } = rehearsed()
    expect(await client.fetch(REQUEST)).toEqual(PRICES)
    expect(asked).toEqual([['SKU-1']])
  })

  it('takes a refusal for an answer, and goes on asking', async () => {
    const { client, asked } = rehearsed('refused')
    for (let time = 0; time < 3; time++) expect(await client.fetch(REQUEST)).toEqual(PRICES)
    expect(asked).toHaveLength(3)
  })

  it.each(['timeout', 'budget'] as const)(
    'takes one that is slow (%s) as it is, and asks it no more',
    async kind => {
      const { client, asked } = rehearsed(kind)
      for (let time = 0; time < 3; time++) expect(await client.fetch(REQUEST)).toEqual(PRICES)
      expect(asked).toHaveLength(1)
    },
  )

  it.each(['failed', 'shed'] as const)('throws what is %s', async kind => {
    await expect(rehearsed(kind).client.fetch(REQUEST)).rejects.toMatchObject({ kind })
  })
})
