import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createPlainServer } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { retryAfterMs } from '../../src/outbox/sinks/webhook.ts'
import { consumer, SECRET, someEvent, webhookTo } from './consumer.ts'

const answering = (status: number, headers: Record<string, string> = {}) =>
  consumer(res => res.writeHead(status, headers).end('what a consumer says'))

describe('a delivery on the wire', () => {
  test('is a CloudEvent in structured mode, posted to the path and query of the URL', async () => {
    const { url, posts } = await consumer()
    const event = someEvent()
    await webhookTo(url).deliver(event)
    expect(posts[0]).toMatchObject({
      method: 'POST',
      url: '/hook?from=punctual',
      headers: {
        'content-type': 'application/cloudevents+json; charset=utf-8',
        traceparent: event.traceparent,
      },
    })
    expect(JSON.parse(posts[0]?.body ?? '')).toEqual({
      specversion: '1.0',
      id: event.id,
      source: '/punctual/orders',
      type: event.type,
      subject: event.subject,
      time: '2026-01-01T12:00:00.005Z',
      datacontenttype: 'application/json',
      tenant: event.tenant,
      traceparent: event.traceparent,
      data: JSON.parse(event.json),
    })
  })

  test('has the same bytes and id each time, and the time of its own attempt', async () => {
    const { url, posts } = await consumer()
    const { clock, deliver } = webhookTo(url)
    await deliver(someEvent({ attempts: 0 }))
    clock.advance(61_000)
    await deliver(someEvent({ attempts: 1 }))
    const [first, second] = posts
    expect(second?.body).toBe(first?.body)
    expect(posts.map(({ headers }) => headers['webhook-id'])).toEqual(Array(2).fill(someEvent().id))
    const times = posts.map(({ headers }) => Number(headers['webhook-timestamp']))
    expect(times).toEqual([Date.UTC(2026, 0, 1) / 1000, Date.UTC(2026, 0, 1) / 1000 + 61])
  })

  test('has a signature that Standard Webhooks verifies, over the text as it was sent', async () => {
    const { url, posts } = await consumer()
    const { clock, deliver } = webhookTo(url)
    // The verifier asks the wall for a timestamp that is not old.
    clock.setWallMs(Date.now())
    await deliver(someEvent({ json: '{"text":"東京 😀"}' }))
    const [{ body, headers } = { body: '', headers: {} }] = posts
    const verify = (secret: string, text: string) =>
      new Webhook(secret).verify(text, headers as Record<string, string>)
    expect(verify(SECRET, body)).toMatchObject({ data: { text: '東京 😀' } })
    expect(() => verify(SECRET, body.replace('東', '西'))).toThrow()
    expect(() => verify(`whsec_${Buffer.alloc(32, 8).toString('base64')}`, body)).toThrow()
  })
})

describe('the verdict', () => {
  test.each([200, 201, 202, 204, 299])('of %d is delivered', async status => {
    const { url } = await answering(status)
    expect(await webhookTo(url).deliver()).toEqual({ kind: 'delivered' })
  })

  test.each([300, 301, 302, 304, 307, 308, 400, 401, 404, 408, 429, 500, 502, 503, 599])(
    'of %d is failed, and the consumer has no say in the reason nor in where it goes next',
    async status => {
      const other = await consumer()
      const { url, posts } = await answering(status, { location: other.url })
      const delivery = await webhookTo(url).deliver()
      expect(delivery).toEqual({
        kind: 'failed',
        reason: `the consumer answered ${status}`,
        retryAfterMs: 0,
      })
      expect(posts).toHaveLength(1)
      expect(other.posts).toEqual([])
    },
  )

  test('of 410 is refused', async () => {
    const { url } = await answering(410)
    expect(await webhookTo(url).deliver()).toEqual({ kind: 'refused', reason: 'the consumer answered 410' })
  })

  test('takes along what Retry-After asks', async () => {
    const { url } = await answering(429, { 'retry-after': '7' })
    expect(await webhookTo(url).deliver()).toMatchObject({ kind: 'failed', retryAfterMs: 7_000 })
  })

  const half = (res: ServerResponse) => res.writeHead(200, { 'content-length': '10' }).write('half')
  const endlessly = (res: ServerResponse) => {
    while (!res.destroyed && res.write('x'.repeat(16_384)));
  }
  test.each<[string, (res: ServerResponse) => void]>([
    ['a reset', res => res.socket?.resetAndDestroy()],
    ['a connection that ends without an answer', res => res.socket?.end()],
    ['an answer that breaks off', res => half(res) && res.socket?.end()],
    ['an answer without an end', res => endlessly(res.on('drain', () => endlessly(res)).writeHead(200))],
    ['a switch of protocols', res => res.socket?.end('HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n')],
    ['something that is no HTTP', res => res.socket?.end('garbage\r\n\r\n')],
    ['heads without an end', res => res.socket?.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(200_000)}`)],
  ])('of %s is failed, in words of ours, and leaves nothing', async (_, answer) => {
    const { url, port, gone } = await consumer(answer)
    const { clock, deliver } = webhookTo(url)
    const delivery = await deliver()
    expect(delivery.kind).toBe('failed')
    const text = JSON.stringify(delivery)
    for (const secret of ['127.0.0.1', String(port), 'hook', SECRET, 'garbage']) {
      expect(text).not.toContain(secret)
    }
    expect(clock.pendingTimers).toBe(0)
    await gone()
  })

  test('of nobody there is failed', async () => {
    const server = createPlainServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    server.close()
    await once(server, 'close')
    expect(await webhookTo(`http://127.0.0.1:${port}/`).deliver()).toEqual({
      kind: 'failed',
      reason: 'the consumer could not be reached (ECONNREFUSED)',
    })
  })

  const hanging: [string, (res: ServerResponse) => void][] = [
    ['never answers', () => {}],
    ['never ends its answer', half],
  ]
  test.each(hanging)('of one that %s is failed at timeoutMs, and it is let go', async (_, answer) => {
    const { url, posts, received, gone } = await consumer(answer)
    const { clock, deliver } = webhookTo(url, { timeoutMs: 30_000 })
    const delivery = deliver()
    await received(1)
    expect(clock.pendingTimers).toBe(1)
    clock.advance(30_000)
    expect(await delivery).toEqual({ kind: 'failed', reason: 'the consumer did not answer in time' })
    await Promise.all([gone(), ...posts.map(({ closed }) => closed)])
    expect(clock.pendingTimers).toBe(0)
  })

  test.each(hanging)('of one that %s is failed when the relay stops it', async (_, answer) => {
    const { url, received, gone } = await consumer(answer)
    const { clock, deliver } = webhookTo(url)
    const controller = new AbortController()
    const delivery = deliver(someEvent(), controller.signal)
    await received(1)
    controller.abort()
    expect((await delivery).kind).toBe('failed')
    await gone()
    expect(clock.pendingTimers).toBe(0)
  })

  test.each(hanging)('of one that %s is failed when the sink closes', async (_, answer) => {
    const { url, received, gone } = await consumer(answer)
    const { clock, deliver, sink } = webhookTo(url)
    const delivery = deliver()
    await received(1)
    await sink.close()
    expect((await delivery).kind).toBe('failed')
    await gone()
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('connections', () => {
  test.each([200, 500])('are kept after an answer of %d', async status => {
    const { url, sockets, posts } = await answering(status)
    const { deliver } = webhookTo(url, { maxConcurrent: 1 })
    for (let time = 0; time < 20; time++) await deliver()
    expect(posts).toHaveLength(20)
    expect(sockets.opened).toBe(1)
  })

  test('are maxConcurrent at most, and closed with the sink', async () => {
    const held: ServerResponse[] = []
    const { url, sockets, received, gone, posts } = await consumer(res => {
      held.push(res)
      if (held.length > 3) res.end()
    })
    const { deliver, sink } = webhookTo(url, { maxConcurrent: 3 })
    const deliveries = Promise.all(
      Array.from({ length: 20 }, (_, index) => deliver(someEvent({ id: `e-${index}` }))),
    )
    await received(3)
    expect(posts).toHaveLength(3)
    for (const res of held) res.end()
    expect(await deliveries).toEqual(Array(20).fill({ kind: 'delivered' }))
    expect(sockets.mostOpen).toBe(3)
    await sink.close()
    await gone()
  })

  test('go to no proxy, whatever the environment says', async () => {
    const asked: string[] = []
    const proxy = createServer((req, res) => res.end(asked.push(req.url ?? '').toString()))
    proxy.on('connect', (req, socket) => socket.destroy(void asked.push(req.url ?? '')))
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    onTestFinished(() => void proxy.close())
    const { port } = proxy.address() as AddressInfo
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY']) {
      vi.stubEnv(name, `http://127.0.0.1:${port}`)
    }
    vi.stubEnv('NODE_USE_ENV_PROXY', '1')
    vi.stubEnv('NO_PROXY', '')
    onTestFinished(() => void vi.unstubAllEnvs())
    const { url, posts } = await consumer()
    expect(await webhookTo(url).deliver()).toEqual({ kind: 'delivered' })
    expect(posts).toHaveLength(1)
    expect(asked).toEqual([])
  })
})

test.each([
  [undefined, 0],
  ['0', 0],
  ['120', 120_000],
  ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
  ['Thursday, 01-Jan-26 00:01:00 GMT', 60_000],
  ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
  ['Mon, 99 Xyz 2026 00:01:00 GMT', 0],
  ['', 0],
  ['-5', 0],
  ['1.5', 0],
  ['0x10', 0],
  ['soon', 0],
  ['soon 2030', 0],
  ['2030-01-01T00:00:00Z', 0],
  [['1', '2'], 0],
  ['5000000000', 5_000_000_000_000],
])('Retry-After: %j asks for %d ms', (header, ms) => {
  expect(retryAfterMs(header, Date.UTC(2026, 0, 1))).toBe(ms)
})

test('Retry-After with more digits than a number has asks for all the time there is', () => {
  expect(retryAfterMs('9'.repeat(400), 0)).toBe(Number.POSITIVE_INFINITY)
})
