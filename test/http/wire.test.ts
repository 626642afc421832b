import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { VirtualClock } from '../support/virtual-clock.ts'
import { listening } from './listening.ts'
import { answers, BODY, JSON_HEADERS, MIB, order, request, statuses, until } from './raw-requests.ts'

describe('one connection', () => {
  test('one connection that pipelines orders holds one permit', async () => {
    const { port, gate, pricing } = await listening()
    const held: (() => void)[] = []
    const most: number[] = []
    const { answer } = pricing
    pricing.answer = async asked => {
      most.push(gate.inFlight)
      await new Promise<void>(resolve => {
        held.push(resolve)
        setImmediate(resolve)
      })
      return answer(asked)
    }
    const keys = ['a', 'b', 'c', 'd', 'e']
    expect(await answers(port, 5, keys.map(key => order(key)).join(''))).toEqual([201, 201, 201, 201, 201])
    expect(held.length).toBeGreaterThan(0)
    expect(new Set(most)).toEqual(new Set([1]))
  })

  test.each([
    ['401', request('POST', '/v1/orders', { Authorization: 'Bearer wrong', 'Content-Length': 0 })],
    ['404', request('GET', '/nothing')],
    ['405', request('PUT', '/v1/orders')],
    ['a problem page', request('GET', '/problems/internal')],
    ['health', request('GET', '/health/live')],
    ['400 for its head', request('POST', '/v1/orders', { ...JSON_HEADERS, 'Content-Length': 2 }, '{}')],
  ])('a request that is answered %s holds no permit, though no permit is free', async (_, bytes) => {
    const { port, gate } = await listening()
    while (gate.enter()) {
      // Takes every permit.
    }
    const [status] = await answers(port, 1, bytes)
    expect(status).not.toBe(429)
    expect(await answers(port, 1, order('k'))).toEqual([429])
  })
})

describe('the head', () => {
  const expecting = (headers: Record<string, string | number>) =>
    request('POST', '/v1/orders', {
      'Idempotency-Key': 'k',
      'Content-Length': 10,
      ...JSON_HEADERS,
      ...headers,
      Expect: '100-continue',
    })

  test.each([
    [401, expecting({ Authorization: 'Bearer wrong' })],
    [400, expecting({ 'Idempotency-Key': '"' })],
    [400, expecting({ 'Request-Budget-Ms': 'soon' })],
    [400, expecting({ 'Content-Length': 0 })],
    [404, request('POST', '/nothing', { 'Content-Length': 10, Expect: '100-continue' })],
    [405, request('PUT', '/v1/orders', { 'Content-Length': 10, Expect: '100-continue' })],
    [413, expecting({ 'Content-Length': 5 * MIB })],
    [415, expecting({ 'Content-Type': 'text/plain' })],
  ])('is answered %i at once, without 100 Continue', async (status, bytes) => {
    const { port, ended } = await listening()
    const socket = connect(port, '127.0.0.1')
    socket.write(bytes)
    expect(statuses(await text(socket))).toEqual([status])
    expect(ended.map(({ status }) => status)).toEqual([status])
  })
})

describe('a refused body', () => {
  const pouring = (head: string) => `POST /v1/orders HTTP/1.1\r\nHost: x\r\n${head}\r\n`
  const json = 'Idempotency-Key: k\r\nContent-Type: application/json\r\n'
  const demo = 'Authorization: Bearer demo\r\n'

  test.each([
    ['413', 413, pouring(`${demo}${json}Content-Length: ${5 * MIB}\r\n`)],
    [
      '413 with Connection: close',
      413,
      pouring(`${demo}${json}Content-Length: ${5 * MIB}\r\nConnection: close\r\n`),
    ],
    [
      '413 to HTTP/1.0',
      413,
      pouring(`${demo}${json}Content-Length: ${5 * MIB}\r\n`).replace('HTTP/1.1', 'HTTP/1.0'),
    ],
    [
      '413 in chunks',
      413,
      `${pouring(`${demo}${json}Transfer-Encoding: chunked\r\nConnection: close\r\n`)}${(5 * MIB).toString(16)}\r\n`,
    ],
    ['401', 401, pouring(`${json}Content-Length: ${5 * MIB}\r\n`)],
    [
      '401 with Connection: close',
      401,
      pouring(`${json}Content-Length: ${5 * MIB}\r\nConnection: close\r\n`),
    ],
  ])(
    'of 5 MiB: the client reads its %s, and the server reads little of the body',
    async (_, status, head) => {
      const { port, server } = await listening()
      const accepted = once(server, 'connection')
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      let said = ''
      socket.on('data', chunk => {
        said += chunk
      })
      socket.write(head)
      socket.write('x'.repeat(5 * MIB))
      const [serverSocket] = await accepted
      await new Promise(resolve => socket.on('close', resolve))
      expect(statuses(said)).toEqual([status])
      expect(said).toMatch(/^Connection: close\r$/m)
      // 64 KiB are read away, and each read of the kernel brings as much again.
      expect(serverSocket.bytesRead).toBeLessThanOrEqual(4 * 65_536)
    },
  )

  test('that ends soon leaves its connection open', async () => {
    const { port } = await listening()
    const refused = `${pouring(`${json}Content-Length: 60000\r\n`)}${'x'.repeat(60_000)}`
    expect(await answers(port, 2, refused + order('k'))).toEqual([401, 201])
  })

  test('that never ends gets one answer, and the connection closes a second later', async () => {
    const clock = new VirtualClock()
    const { port, ended } = await listening({ clock })
    const socket = connect(port, '127.0.0.1')
    const closed = text(socket)
    socket.write(order('k', { 'Content-Length': BODY.length + 1 }))
    while (clock.pendingTimers === 0) await new Promise(resolve => setImmediate(resolve))
    clock.advance(20_010)
    await until(() => ended.length === 1)
    clock.advance(1_000)
    expect(statuses(await closed)).toEqual([504])
    expect(ended.map(({ status }) => status)).toEqual([504])
  })
})
