import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MAX_UNIT_PRICE } from '../../src/domain/index.ts'
import { outboundChannels, PricingClient } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { type BundledPricing, startBundledPricing } from '../../src/pricing/index.ts'
import { systemClock } from '../../src/runtime/index.ts'

const FILE = fileURLToPath(new URL('../../config/prices.json', import.meta.url))
const PRICES = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, Record<string, number>>

function unexpected(error: unknown): never {
  throw error
}

async function ask(baseUrl: string, currency: string, skus: readonly string[]) {
  const response = await fetch(`${baseUrl}/v1/prices:batch`, {
    method: 'POST',
    body: JSON.stringify({ currency, skus }),
  })
  return { status: response.status, body: await response.json() }
}

describe('the bundled pricing service', () => {
  let bundled: BundledPricing
  beforeAll(async () => {
    bundled = await startBundledPricing(FILE, unexpected)
  })
  afterAll(() => bundled.close())

  test.each(['USD', 'EUR', 'JPY'])(
    'answers config/prices.json over HTTP, at least 100 SKUs in %s',
    async currency => {
      const list = PRICES[currency] ?? {}
      const skus = Object.keys(list)
      expect(skus.length).toBeGreaterThanOrEqual(100)
      expect(skus).toEqual(expect.arrayContaining(['SKU-1', 'SKU-100']))
      for (const price of Object.values(list)) {
        expect(Number.isInteger(price) && price > 0 && price <= MAX_UNIT_PRICE).toBe(true)
      }
      const { status, body } = await ask(bundled.baseUrl, currency, [...skus, 'NONE'])
      expect(status).toBe(200)
      expect(body).toEqual({
        prices: Object.entries(list).map(([sku, unitPrice]) => ({ sku, unitPrice })),
        unknown: ['NONE'],
      })
    },
  )

  test('knows no SKU of a currency that it does not have', async () => {
    for (const currency of ['XTS', '__proto__', 'constructor']) {
      expect((await ask(bundled.baseUrl, currency, ['SKU-1', 'toString'])).body).toEqual({
        prices: [],
        unknown: ['SKU-1', 'toString'],
      })
    }
  })

  test('satisfies the client', async () => {
    const client = new PricingClient(
      bundled.baseUrl,
      outboundOptions.parse({ leaseMs: 20_000, totalMs: 15_000, attemptMs: 5_000 }),
      {
        channels: outboundChannels(),
        clock: systemClock,
        shelf: { get: () => undefined, set: () => {}, delete: () => {} },
      },
    )
    const { prices, unknown } = await client.fetch({
      currency: 'EUR',
      skus: ['SKU-1', 'SKU-2', 'NONE'],
      neededByMs: systemClock.nowMs() + 60_000,
      signal: new AbortController().signal,
      traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    })
    expect(prices.get('SKU-1')).toBe(PRICES.EUR?.['SKU-1'])
    expect(unknown).toEqual(['NONE'])
    await client.close()
  })

  test('refuses what is too large and what is not there', async () => {
    const url = `${bundled.baseUrl}/v1/prices:batch`
    expect((await fetch(url)).status).toBe(404)
    expect((await fetch(url, { method: 'POST', body: 'x'.repeat(70_000) })).status).toBe(400)
  })

  test('does not start on a price list that cannot be read', async () => {
    await expect(startBundledPricing('/nowhere/prices.json', unexpected)).rejects.toThrow()
  })

  test('outlives a body that is not JSON', async () => {
    const script = `
      import { startBundledPricing } from ${JSON.stringify(import.meta.resolve('../../src/pricing/index.ts'))}
      const bundled = await startBundledPricing(${JSON.stringify(FILE)}, () => process.exit(9))
      const response = await fetch(bundled.baseUrl + '/v1/prices:batch', { method: 'POST', body: '{' })
      console.log(response.status)
      await bundled.close()`
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', script])
    expect(stdout.trim()).toBe('400')
  })
})
