import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { GOOD, NARROW, priced, TRACE_ID, WIDE } from './priced-client.ts'
import { pricingServer, say } from './pricing-server.ts'

describe('the pricing client', () => {
  test('brings the prices, and what is unknown, in one attempt', async () => {
    const { fetch, received, attempts, calls } = await priced(res =>
      say(res, { prices: [{ sku: 'SKU-1', unitPrice: 250 }], unknown: ['SKU-2'] }),
    )
    expect(await fetch()).toEqual({
      prices: new Map([['SKU-1', 250]]),
      unknown: ['SKU-2'],
      bad: [],
      source: 'live',
    })
    expect(received).toMatchObject([
      { url: '/v1/prices:batch', body: { currency: 'USD', skus: ['SKU-1', 'SKU-2'] } },
    ])
    expect({ attempts, calls }).toEqual({ attempts: ['won'], calls: ['ok'] })
  })

  test('ignores what it did not ask for', async () => {
    const extra = [...GOOD.prices, { sku: 'SKU-3', unitPrice: -1 }, { sku: '__proto__', unitPrice: 1 }, null]
    const { fetch } = await priced(res => say(res, { prices: extra, unknown: ['SKU-4'] }))
    expect(await fetch()).toEqual({
      prices: new Map([
        ['SKU-1', 250],
        ['SKU-2', 0],
      ]),
      unknown: [],
      bad: [],
      source: 'live',
    })
  })

  test.each([400, 413, 422])(
    'does not ask again for one SKU after %i, which says that the call is wrong',
    async status => {
      const { fetch, received, attempts, calls } = await priced(res => res.writeHead(status).end('{}'), {
        skus: ['SKU-1'],
      })
      await expect(fetch()).rejects.toMatchObject({ kind: 'refused' })
      expect(received).toHaveLength(1)
      expect({ attempts, calls }).toEqual({ attempts: ['failed'], calls: ['refused'] })
    },
  )

  test.each([401, 403, 404, 429, 500, 503])(
    'takes %i for a failure of the service, and tries again',
    async status => {
      const { fetch, received, calls } = await priced(res => res.writeHead(status).end('{}'), {
        skus: ['SKU-1'],
      })
      await expect(fetch()).rejects.toMatchObject({ kind: 'failed' })
      expect(received).toHaveLength(2)
      expect(calls).toEqual(['failed'])
    },
  )

  test('survives one failure by the retry', async () => {
    let answers = 0
    const { fetch, attempts, calls } = await priced(res =>
      answers++ === 0 ? res.socket?.resetAndDestroy() : say(res, GOOD),
    )
    expect((await fetch()).prices.get('SKU-1')).toBe(250)
    expect({ attempts, calls }).toEqual({ attempts: ['failed', 'won'], calls: ['ok'] })
  })

  test('gives a service that hangs up by its limits, and lets go of the connection', async () => {
    const { fetch, received, attempts, calls } = await priced(() => {}, { options: NARROW })
    await expect(fetch()).rejects.toMatchObject({ kind: 'timeout' })
    expect(attempts.every(result => result === 'expired')).toBe(true)
    expect(attempts.length).toBeGreaterThanOrEqual(1)
    expect(calls).toEqual(['timeout'])
    await Promise.all(received.map(({ closed }) => closed))
  })

  test('gives up on headers without a body just the same', async () => {
    const { fetch, received } = await priced(
      res => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
        res.write('{')
      },
      { options: NARROW },
    )
    await expect(fetch()).rejects.toMatchObject({ kind: 'timeout' })
    await Promise.all(received.map(({ closed }) => closed))
  })

  test('blames the budget, not pricing, when the request has no more time', async () => {
    const { fetch, calls } = await priced(() => {})
    await expect(fetch(undefined, 30)).rejects.toMatchObject({ kind: 'budget' })
    expect(calls).toEqual(['budget'])
  })

  test('stops the exchange when the request ends, with the very reason of its end', async () => {
    const request = new AbortController()
    const reason = new Error('hung up')
    const { fetch, received, attempts, calls } = await priced(() => request.abort(reason))
    await expect(fetch(request.signal)).rejects.toBe(reason)
    await received[0]?.closed
    expect(received).toHaveLength(1)
    expect({ attempts, calls }).toEqual({ attempts: ['cancelled'], calls: ['cancelled'] })
  })

  test('sends the trace, what is left for the attempt, and an id of its own with each attempt', async () => {
    // Five milliseconds pass before each answer: more than enough for the next budget to be a smaller number.
    const { fetch, received } = await priced(res => setTimeout(() => res.writeHead(500).end(), 5))
    await expect(fetch(undefined, 3_000)).rejects.toMatchObject({ kind: 'failed' })
    const headers = received.map(one => one.headers)
    expect(headers).toHaveLength(2)
    for (const one of headers) {
      expect(one.traceparent).toMatch(new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-01$`))
      expect(one['request-budget-ms']).toMatch(/^[1-9]\d*$/)
      expect(one['content-type']).toBe('application/json')
    }
    const [firstMs = 0, secondMs = 0] = headers.map(one => Number(one['request-budget-ms']))
    expect(firstMs).toBeLessThanOrEqual(3_000)
    expect(secondMs).toBeLessThan(firstMs)
    expect(new Set(headers.map(one => one['x-attempt-id'])).size).toBe(2)
    expect(new Set(headers.map(one => one.traceparent)).size).toBe(2)
  })

  test.each(['/pricing', '/pricing/', '/a/b//'])('keeps the path %s of its base URL', async prefix => {
    const { fetch, received } = await priced(res => say(res, GOOD), { prefix })
    await fetch()
    expect(received[0]?.url).toBe(`${prefix.replace(/\/+$/, '')}/v1/prices:batch`)
  })

  test('is never sent through a proxy, whatever the environment says', async () => {
    const proxy = await pricingServer(res => res.writeHead(500).end())
    const server = await pricingServer(res => say(res, GOOD))
    onTestFinished(() => proxy.close())
    onTestFinished(() => server.close())
    const script = `
      import { outboundChannels, PricingClient } from ${JSON.stringify(import.meta.resolve('../../src/outbound/index.ts'))}
      import { outboundOptions } from ${JSON.stringify(import.meta.resolve('../../src/outbound/options.ts'))}
      import { systemClock as clock } from ${JSON.stringify(import.meta.resolve('../../src/runtime/index.ts'))}
      const options = outboundOptions.parse(${JSON.stringify(WIDE)})
      const shelf = { get: () => undefined, set: () => {}, delete: () => {} }
      const client = new PricingClient(${JSON.stringify(server.baseUrl)}, options, { channels: outboundChannels(), clock, shelf })
      const { signal } = new AbortController()
      const list = await client.fetch({ currency: 'USD', skus: ['SKU-1'], neededByMs: clock.nowMs() + 60_000, signal, traceparent: '' })
      console.log(list.prices.get('SKU-1'))
      await client.close()`
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], {
      env: {
        NODE_USE_ENV_PROXY: '1',
        HTTP_PROXY: proxy.baseUrl,
        http_proxy: proxy.baseUrl,
        HTTPS_PROXY: proxy.baseUrl,
        ALL_PROXY: proxy.baseUrl,
      },
    })
    expect(stdout.trim()).toBe('250')
    expect(proxy.received).toEqual([])
    expect(server.received).toHaveLength(1)
  })
})
