import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { GOOD, priced } from './priced-client.ts'
import { say } from './pricing-server.ts'

const list = (...unitPrices: unknown[]) => ({
  prices: unitPrices.map((unitPrice, index) => ({ sku: `SKU-${index + 1}`, unitPrice })),
  unknown: [],
})

const faults: Record<string, (res: ServerResponse) => void> = {
  '500': res => res.writeHead(500).end('{"error":"secret"}'),
  '503 with a price list': res =>
    res.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify(GOOD)),
  '429': res => res.writeHead(429).end(),
  '302 elsewhere': res => res.writeHead(302, { location: '/elsewhere' }).end(),
  '204': res => res.writeHead(204).end(),
  'a reset': res => res.socket?.resetAndDestroy(),
  'a reset in the middle of the body': res => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
    res.write('{"prices":', () => res.socket?.resetAndDestroy())
  },
  garbage: res => say(res, '<html>{"prices":[],"unknown":[]}'),
  'an empty body': res => say(res, ''),
  'a body cut off': res => {
    const text = JSON.stringify(GOOD)
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': String(text.length) })
    res.write(text.slice(0, -5), () => res.destroy())
  },
  'chunks without an end': res => {
    res.writeHead(200, { 'content-type': 'application/json' })
    res.write(JSON.stringify(GOOD), () => res.destroy())
  },
  'another content type': res => say(res, GOOD, { 'content-type': 'text/plain' }),
  'a content type that only begins like JSON': res => say(res, GOOD, { 'content-type': 'application/json5' }),
  '10 MB': res => say(res, { ...GOOD, padding: 'x'.repeat(10 * 1024 * 1024) }),
  '300 KB': res => say(res, { ...GOOD, padding: 'x'.repeat(300 * 1024) }),
  null: res => say(res, 'null'),
  'an array': res => say(res, [GOOD]),
  'a list that is none': res => say(res, { prices: { 'SKU-1': 250 }, unknown: [] }),
  'no price at all': res => say(res, { prices: [], unknown: [] }),
  'another currency': res => say(res, { ...GOOD, currency: 'EUR' }),
  'a list of unknown that is none': res => say(res, { ...GOOD, unknown: 'SKU-1' }),
  'an unknown that is nested': res => say(res, { prices: [], unknown: [['SKU-1', 'SKU-2']] }),
}

/** Answers that are good for SKU-1 or SKU-2, and not for the other. */
const partFaults: Record<string, (res: ServerResponse) => void> = {
  'a negative price': res => say(res, list(250, -1)),
  'a fraction': res => say(res, list(250, 2.5)),
  'a huge price': res => say(res, list(250, 100_000_000_001)),
  'an infinite price': res => say(res, '{"prices":[{"sku":"SKU-1","unitPrice":1e999}],"unknown":["SKU-2"]}'),
  'a price in another currency': res =>
    say(res, { prices: [GOOD.prices[0], { ...GOOD.prices[1], currency: 'EUR' }] }),
  'one SKU both priced and unknown': res => say(res, { ...GOOD, unknown: ['SKU-1'] }),
  'a price in words': res => say(res, list(250, '250')),
  'a null price': res => say(res, list(250, null)),
  'one SKU priced twice': res =>
    say(res, { ...GOOD, prices: [...GOOD.prices, { sku: 'SKU-1', unitPrice: 1 }] }),
  'a SKU left out': res => say(res, list(250)),
}

describe('the pricing client, which believes nothing,', () => {
  test.each(Object.entries(faults))(
    'takes %s for a failure, tries once more, and never for a price',
    async (_name, fault) => {
      const { fetch, received, attempts, calls } = await priced(fault)
      await expect(fetch()).rejects.toMatchObject({ name: 'OutboundFailure', kind: 'failed' })
      expect(received).toHaveLength(2)
      expect({ attempts, calls }).toEqual({ attempts: ['failed', 'failed'], calls: ['failed'] })
    },
  )

  test.each(Object.entries(partFaults))(
    'takes %s for a failure of those who asked for it, without a further attempt',
    async (_name, fault) => {
      const { fetch, received, attempts, calls } = await priced(fault)
      await expect(fetch()).rejects.toMatchObject({ name: 'OutboundFailure', kind: 'failed' })
      expect(received).toHaveLength(1)
      expect({ attempts, calls }).toEqual({ attempts: ['won'], calls: ['failed'] })
    },
  )

  test('gives the one who asked for the other SKU its price all the same', async () => {
    const { fetchOf, received } = await priced(res => say(res, list(250, -1)))
    const [one, other] = await Promise.allSettled([fetchOf(['SKU-1']), fetchOf(['SKU-2'])])
    expect(one).toMatchObject({ status: 'fulfilled', value: { prices: new Map([['SKU-1', 250]]), bad: [] } })
    expect(other).toMatchObject({ status: 'rejected', reason: { kind: 'failed' } })
    expect(received).toHaveLength(1)
  })

  test('does not need a list of what is unknown', async () => {
    const { fetch } = await priced(res => say(res, { prices: GOOD.prices }))
    expect((await fetch()).unknown).toEqual([])
  })
})
