import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Bench } from '../../support/bench.ts'
import { requestBytes } from '../../support/connection.ts'
import { answered, created, problem, same, status } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshKey, orderBytes, sampleOrder } from '../../support/samples.ts'

const CONNECTIONS = 50
const PIPELINED = 2_000
const ORDERS = 100
const POURED_BYTES = 5 * 1024 * 1024

/** One client wants what belongs to all: permits, the server's reading time, its connections. */
export async function greedy({ trial, api, server, admin }: Bench): Promise<void> {
  const unread: Record<string, Buffer> = {
    'problem pages': requestBytes('GET', '/problems/internal', {}),
    'orders without a key': requestBytes('POST', '/v1/orders', { 'content-type': 'application/json' }, '{}'),
    'orders with a key': orderBytes('the same', JSON.stringify(sampleOrder())),
  }
  for (const [what, bytes] of Object.entries(unread)) {
    await trial.check(
      `${CONNECTIONS} connections pipeline ${what} and never read: others get 201`,
      async () => {
        const sockets = await Promise.all(
          Array.from({ length: CONNECTIONS }, () => silentReader(server.port)),
        )
        trial.own(() => {
          for (const socket of sockets) socket.destroy()
        })
        for (const socket of sockets) socket.write(Buffer.concat(Array(PIPELINED).fill(bytes)))
        for (let count = 0; count < ORDERS; count++) created(await api.order(freshKey(), sampleOrder()))
        for (const socket of sockets) socket.destroy()
        return `201 × ${ORDERS}`
      },
    )
  }

  await trial.check('one connection that pipelines orders holds one permit at a time', async () => {
    const connection = await trial.connect(server.port)
    const keys = Array.from({ length: 20 }, freshKey)
    connection.send(Buffer.concat(keys.map(key => orderBytes(key, JSON.stringify(sampleOrder())))))
    const seen: number[] = []
    for (const _ of keys) {
      created(answered(await connection.read()))
      seen.push((await Metrics.read(admin)).sum('punctual_admission_in_flight'))
    }
    same(Math.max(...seen) <= 1, true, `at most one request in flight, of ${seen}`)
    return `at most ${Math.max(...seen)}`
  })

  for (const connection of ['keep-alive', 'close']) {
    await trial.check(
      `a 413 reaches a client that pours 5 MiB (Connection: ${connection}), 5 of 5`,
      async () => {
        for (let count = 0; count < 5; count++) same(await poured(server.port, connection), 413, 'the status')
        return '413 × 5'
      },
    )
  }

  await trial.check('a 413 reaches a client of HTTP/1.0 that pours 5 MiB', async () => {
    const connection = await trial.connect(server.port)
    const head = orderBytes(freshKey(), '', { 'content-length': String(POURED_BYTES) })
    connection.send(head.toString().replace('HTTP/1.1', 'HTTP/1.0'))
    connection.send(Buffer.alloc(POURED_BYTES))
    problem(answered(await connection.read()), 413, 'payload-too-large')
  })

  await trial.check(
    'a refused body that does not end closes its connection within a few seconds',
    async () => {
      const connection = await trial.connect(server.port)
      connection.send(
        orderBytes(freshKey(), '', { authorization: 'Bearer nobody', 'content-length': '1000' }),
      )
      problem(answered(await connection.read()), 401, 'unauthenticated')
      same(await connection.read(), undefined, 'a second answer')
    },
  )

  await trial.check('connections that never speak count as no request', async () => {
    const before = (await Metrics.read(admin)).sum('punctual_requests_total')
    const silent = await trial.connect(server.port)
    same(await silent.read(20_000), undefined, 'the answer to nothing')
    same((await Metrics.read(admin)).sum('punctual_requests_total'), before, 'the requests counted')
  })

  await trial.check('a reset behind CONNECT does not end the instance', async () => {
    for (let count = 0; count < 20; count++) {
      const connection = await trial.connect(server.port)
      connection.send('CONNECT example.org:443 HTTP/1.1\r\nhost: example.org\r\n\r\n')
      connection.destroy('rst')
    }
    status(await api.get('/health/ready'), 200)
  })
}

function silentReader(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('error', reject)
    socket.once('connect', () => {
      // A connection that the server has cut is as good an end as any other here.
      socket.off('error', reject).on('error', () => {})
      socket.pause()
      resolve(socket)
    })
  })
}

/** The status that an ordinary HTTP client hands to its caller; 0 when it hands an error instead. */
function poured(port: number, connection: string): Promise<number> {
  return new Promise(resolve => {
    const headers = {
      authorization: `Bearer ${KEYS.full}`,
      'idempotency-key': freshKey(),
      'content-type': 'application/json',
      'content-length': POURED_BYTES,
      connection,
    }
    const outgoing = request({
      host: '127.0.0.1',
      port,
      method: 'POST',
      path: '/v1/orders',
      agent: false,
      headers,
    })
    outgoing.on('error', () => resolve(0))
    outgoing.on('response', incoming => {
      incoming.resume()
      incoming.on('end', () => resolve(incoming.statusCode ?? 0))
      incoming.on('error', () => resolve(0))
    })
    outgoing.end(Buffer.alloc(POURED_BYTES))
  })
}
