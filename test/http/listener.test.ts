import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import type { PriceRequest } from '../../src/outbound/index.ts'
import { listening } from './listening.ts'

const BODY = '{"customerId":"c","currency":"USD","items":[{"sku":"A","quantity":1}]}'

function head(headers: Record<string, string | number>): string {
  const all = { Host: 'x', Authorization: 'Bearer demo', 'Idempotency-Key': 'k', ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST /v1/orders HTTP/1.1\r\n${lines.join('')}\r\n`
}
const JSON_HEAD = { 'Content-Type': 'application/json' }

/** Sends `bytes` and reads until the server has closed the connection. */
async function exchange(port: number, ...bytes: (string | Buffer)[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  for (const part of bytes) socket.write(part)
  return text(socket)
}

describe('the listener', () => {
  test('counts a hang-up in the middle of the body as 499 and stores nothing', async () => {
    const { port, store, gate, firstEnded } = await listening()
    const socket = connect(port, '127.0.0.1')
    socket.write(head({ ...JSON_HEAD, 'Content-Length': 100, Expect: '100-continue' }))
    // Told to go on: the request has been admitted.
    await once(socket, 'data')
    socket.write('{"customerId":')
    socket.resetAndDestroy()
    expect(await firstEnded).toMatchObject({ status: 499, outcome: 'client_abort' })
    expect(gate.inFlight).toBe(0)
    expect(store.writes).toEqual([])
  })

  test('stops the work of a client that hangs up while prices are fetched, and gives its permit back', async () => {
    const { port, store, pricing, gate, firstEnded } = await listening()
    const asked = Promise.withResolvers<PriceRequest>()
    pricing.answer = request => {
      asked.resolve(request)
      return new Promise((_, reject) =>
        request.signal.addEventListener('abort', () => reject(request.signal.reason)),
      )
    }
    const socket = connect(port, '127.0.0.1')
    socket.write(head({ ...JSON_HEAD, 'Content-Length': BODY.length }) + BODY)
    const { signal } = await asked.promise
    expect(gate.inFlight).toBe(1)
    socket.resetAndDestroy()
    expect(await firstEnded).toMatchObject({ status: 499, outcome: 'client_abort' })
    expect(signal.aborted).toBe(true)
    expect(gate.inFlight).toBe(0)
    expect(store.writes).toEqual([])
  })

  test('answers a good order with 201 and where it is', async () => {
    const { port, store } = await listening()
    const request = head({ ...JSON_HEAD, 'Content-Length': BODY.length, Connection: 'close' }) + BODY
    const answer = await exchange(port, request)
    expect(answer).toMatch(/^HTTP\/1\.1 201 Created\r\n/)
    expect(answer).toMatch(/\r\nLocation: \/v1\/orders\/[0-9a-f-]{36}\r\n/)
    expect(answer).toMatch(/\r\nETag: "v1"\r\n/)
    expect(answer).not.toMatch(/X-Powered-By|Idempotent-Replayed/i)
    expect(await exchange(port, request)).toMatch(/\r\nIdempotent-Replayed: true\r\n/)
    expect(store.orders).toBe(1)
  })

  const close = { Connection: 'close' }
  const sized = (body: string | Buffer, headers: Record<string, string> = JSON_HEAD) =>
    [head({ ...headers, ...close, 'Content-Length': Buffer.byteLength(body) }), body] as const
  const chunked = (body: string) =>
    [
      head({ ...JSON_HEAD, ...close, 'Transfer-Encoding': 'chunked' }),
      `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ] as const

  test.each<[string, number, string, readonly (string | Buffer)[]]>([
    ['no body', 400, 'malformed-json', [head({ ...JSON_HEAD, ...close })]],
    [
      'an empty chunked body',
      400,
      'malformed-json',
      [head({ ...JSON_HEAD, ...close, 'Transfer-Encoding': 'chunked' }), '0\r\n\r\n'],
    ],
    ['half of an object', 400, 'malformed-json', sized('{"customerId":')],
    ['a member named twice', 400, 'malformed-json', sized(BODY.replace('{', '{"currency":"EUR",'))],
    ['bytes that are no UTF-8', 400, 'malformed-json', sized(Buffer.from([0x22, 0xff, 0x22]))],
    ['a wrong type', 400, 'validation-failed', sized(BODY.replace('1', '"1"'))],
    ['a deep nest', 400, 'validation-failed', sized('['.repeat(1_000) + ']'.repeat(1_000))],
    ['too many bytes', 413, 'payload-too-large', sized('x'.repeat(2_049))],
    [
      'too many bytes announced and never sent',
      413,
      'payload-too-large',
      [head({ ...JSON_HEAD, ...close, 'Content-Length': 1e9 })],
    ],
    ['too many bytes in chunks', 413, 'payload-too-large', chunked('x'.repeat(2_049))],
    ['another type', 415, 'unsupported-media-type', sized(BODY, { 'Content-Type': 'text/plain' })],
    ['no type', 415, 'unsupported-media-type', sized(BODY, {})],
    [
      'another charset',
      415,
      'unsupported-media-type',
      sized(BODY, { 'Content-Type': 'application/json; charset=utf-16' }),
    ],
    [
      'a content coding',
      415,
      'unsupported-media-type',
      sized(BODY, { ...JSON_HEAD, 'Content-Encoding': 'gzip' }),
    ],
    [
      'an unknown coding',
      415,
      'unsupported-media-type',
      sized(BODY, { ...JSON_HEAD, 'Content-Encoding': 'x' }),
    ],
  ])('answers %s with %i %s and stores nothing', async (_name, status, code, bytes) => {
    const { port, store, ended, gate } = await listening()
    const answer = await exchange(port, ...bytes)
    expect(answer.slice(0, answer.indexOf('\r\n'))).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toMatch(/\r\nContent-Type: application\/problem\+json\r\n/)
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ code, status })
    expect(store.writes).toEqual([])
    expect(ended.map(message => message.status)).toEqual([status])
    expect(gate.inFlight).toBe(0)
  })

  test('answers what came whole before it refuses the broken bytes behind it', async () => {
    const { port, store } = await listening()
    const whole = head({ ...JSON_HEAD, 'Content-Length': BODY.length }) + BODY
    const said = await exchange(port, whole, 'no HTTP at all\r\n\r\n', 'and more\r\n')
    expect([...said.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)).toEqual(['201', '400'])
    expect(store.orders).toBe(1)
  })

  test('draining, answers everything in the pipe, and only the last answer closes', async () => {
    const { port, store, phase } = await listening()
    phase.draining = true
    const piped = ['a', 'b', 'c'].map(
      key => head({ ...JSON_HEAD, 'Idempotency-Key': key, 'Content-Length': BODY.length }) + BODY,
    )
    const said = await exchange(port, piped.join(''))
    expect([...said.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)).toEqual([
      '201',
      '201',
      '201',
    ])
    expect([...said.matchAll(/^Connection: (.*)\r$/gm)].map(([, value]) => value)).toEqual([
      'keep-alive',
      'keep-alive',
      'close',
    ])
    expect(store.orders).toBe(3)
  })

  test('answers a body whose framing breaks once, as its own request', async () => {
    const { port, store, ended } = await listening()
    const said = await exchange(
      port,
      head({ ...JSON_HEAD, 'Transfer-Encoding': 'chunked' }),
      '5\r\n{"cus\r\nzz\r\n',
    )
    expect([...said.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)).toEqual(['400'])
    expect(said).toContain('"code":"malformed-request"')
    expect(ended.map(({ status, route }) => ({ status, route }))).toEqual([
      { status: 400, route: '/v1/orders' },
    ])
    expect(store.orders).toBe(0)
  })

  test('counts bytes that never were a request', async () => {
    const { port, ended } = await listening()
    expect(await exchange(port, 'no HTTP at all\r\n\r\n')).toContain('"code":"malformed-request"')
    expect(ended).toMatchObject([{ status: 400, route: 'unmatched', outcome: 'client_error' }])
  })

  test.each([
    ['two Host headers', 'Host: y\r\n'],
    ['two Authorization headers', 'Authorization: Bearer other\r\n'],
    ['a transfer coding besides chunked', 'Transfer-Encoding: gzip, chunked\r\n'],
  ])('refuses a head with %s', async (_what, line) => {
    const { port } = await listening()
    const request = `GET /v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo\r\n${line}Connection: close\r\n\r\n`
    expect(await exchange(port, request)).toMatch(/^HTTP\/1\.1 400 /)
  })

  test('takes a target in absolute form, for health too', async () => {
    const { port, ended } = await listening()
    const get = (target: string) =>
      exchange(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(await get('http://x/health/live?a=b')).toMatch(/^HTTP\/1\.1 200 /)
    expect(await get('http://x/v1/orders')).toMatch(/^HTTP\/1\.1 401 /)
    expect(await get('http://x')).toMatch(/^HTTP\/1\.1 404 /)
    expect(ended.map(({ route }) => route)).toEqual(['/v1/orders', 'unmatched'])
  })

  test('refuses a tunnel, behind the answers that it owes', async () => {
    const { port, store } = await listening()
    const whole = head({ ...JSON_HEAD, 'Content-Length': BODY.length }) + BODY
    const said = await exchange(port, whole, 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n')
    expect([...said.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)).toEqual(['201', '400'])
    expect(store.orders).toBe(1)
  })
})
