import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { VirtualClock } from '../support/virtual-clock.ts'
import { listening } from './listening.ts'
import { answers, JSON_HEADERS, order, request, statuses, until } from './raw-requests.ts'

describe('what is no request', () => {
  test('a connection that never sent a byte is closed without an answer and counts as no request', async () => {
    const { port, ended } = await listening({ http: { headersTimeoutMs: 100, requestTimeoutMs: 100 } })
    const socket = connect(port, '127.0.0.1')
    expect(await text(socket)).toBe('')
    expect(ended).toEqual([])
  })

  test('half a head is answered 408', async () => {
    const { port, ended } = await listening({ http: { headersTimeoutMs: 100, requestTimeoutMs: 1_000 } })
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /v1/orders HT')
    expect(statuses(await text(socket))).toEqual([408])
    expect(ended.map(({ status }) => status)).toEqual([408])
  })

  test('a reset behind CONNECT ends nothing but its connection', async () => {
    const { port, server } = await listening()
    const accepted = once(server, 'connection')
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(socket, 'data')
    const [serverSocket] = await accepted
    socket.resetAndDestroy()
    await new Promise(resolve => serverSocket.on('close', resolve))
    expect(await answers(port, 1, order('k'))).toEqual([201])
  })
})

describe('a pipelined request that breaks', () => {
  test('in its body is answered 400 in its turn, and once', async () => {
    const { port, ended } = await listening()
    const socket = connect(port, '127.0.0.1')
    const broken = request(
      'POST',
      '/v1/orders',
      { ...JSON_HEADERS, 'Transfer-Encoding': 'chunked' },
      'zz\r\n',
    )
    socket.write(order('a') + order('b') + broken)
    expect(statuses(await text(socket))).toEqual([201, 201, 400])
    expect(ended.map(({ status }) => status)).toEqual([201, 201, 400])
  })

  test('in its head is answered 400 in its turn, and once', async () => {
    const { port, ended } = await listening()
    const socket = connect(port, '127.0.0.1')
    socket.write(`${order('a') + order('b')}no HTTP\r\n\r\n`)
    expect(statuses(await text(socket))).toEqual([201, 201, 400])
    expect(ended.map(({ status }) => status)).toEqual([201, 201, 400])
  })

  test('with the end of the stream leaves the answers before it as they are', async () => {
    const { port } = await listening()
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end(`${order('a')}GET /v1/or`)
    expect(statuses(await text(socket))).toEqual([201])
  })
})

describe('a wish to change the protocol', () => {
  const upgrade = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' }

  test('is ignored: the requests before and behind it are answered, in order', async () => {
    const { port, ended } = await listening()
    const bytes =
      request('GET', '/problems/internal') +
      request('GET', '/v1/orders', upgrade) +
      request('GET', '/problems/internal') +
      request('GET', '/nothing', upgrade) +
      order('k')
    expect(await answers(port, 5, bytes)).toEqual([200, 400, 200, 404, 201])
    expect(ended).toHaveLength(5)
  })

  test('is ignored on an order with a body', async () => {
    const { port, store } = await listening()
    expect(await answers(port, 2, order('a', upgrade) + order('b'))).toEqual([201, 201])
    expect(store.orders).toBe(2)
  })
})

describe('a client that closes its side', () => {
  test('behind a whole order gets its answer', async () => {
    const { port, store, ended } = await listening()
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end(order('k'))
    expect(statuses(await text(socket))).toEqual([201])
    expect(store.orders).toBe(1)
    expect(ended.map(({ status }) => status)).toEqual([201])
  })

  test('behind several requests gets all their answers', async () => {
    const { port } = await listening()
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end(order('a') + request('GET', '/nothing') + order('b'))
    expect(statuses(await text(socket))).toEqual([201, 404, 201])
  })

  test('and reads on gets its answer, however late', async () => {
    const clock = new VirtualClock()
    const { port, pricing } = await listening({ clock })
    const { answer } = pricing
    const held = Promise.withResolvers<void>()
    pricing.answer = async asked => {
      await held.promise
      return answer(asked)
    }
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const said = text(socket)
    socket.end(order('k'))
    // The deadline, and the probe.
    await until(() => clock.pendingTimers === 2)
    clock.advance(100)
    clock.advance(100)
    held.resolve()
    expect(statuses(await said)).toEqual([102, 102, 201])
  })

  test('and is gone is found out and counted as 499, and its work stops', async () => {
    const clock = new VirtualClock()
    const { port, pricing, store, firstEnded } = await listening({ clock })
    const stopped = Promise.withResolvers<void>()
    pricing.answer = ({ signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          stopped.resolve()
          reject(signal.reason)
        }),
      )
    const socket = connect(port, '127.0.0.1')
    socket.write(order('k'), () => socket.destroy())
    await until(() => clock.pendingTimers === 2)
    while (clock.pendingTimers > 0) {
      clock.advance(100)
      await new Promise(resolve => setImmediate(resolve))
    }
    await stopped.promise
    expect(await firstEnded).toMatchObject({ status: 499, outcome: 'client_abort' })
    expect(store.writes).toEqual([])
  })

  test('in the middle of its body gets nothing and is counted as 499', async () => {
    const { port, store, firstEnded } = await listening()
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.end(order('k').slice(0, -1))
    expect(await text(socket)).toBe('')
    expect(await firstEnded).toMatchObject({ status: 499, outcome: 'client_abort' })
    expect(store.writes).toEqual([])
  })
})
