import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Bench } from '../../support/bench.ts'
import { answered, between, created, demand, matches, problem, same, status } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { freshKey, orderBytes, sampleOrder } from '../../support/samples.ts'

const host = 'host: 127.0.0.1\r\n'
const post = (headers: string, body = '') =>
  `POST /v1/orders HTTP/1.1\r\n${host}authorization: Bearer ${KEYS.full}\r\ncontent-type: application/json\r\nidempotency-key: wire\r\n${headers}\r\n${body}`

// What is not HTTP, or is HTTP that two parsers could read in two ways.
const MALFORMED: Record<string, string | Uint8Array> = {
  'words that are no request': 'hello there\r\n\r\n',
  'bytes that are no text': Uint8Array.from([
    0x16, 3, 1, 0, 0xa5, 1, 0, 0, 0xa1, 3, 3, 0, 0xff, 13, 10, 13, 10,
  ]),
  'a request line without version': `GET /v1/orders/1\r\n${host}\r\n`,
  'HTTP 9.9': `GET /health/live HTTP/9.9\r\n${host}\r\n`,
  'a method that does not exist': `BREW /health/live HTTP/1.1\r\n${host}\r\n`,
  'a method in small letters': `get /health/live HTTP/1.1\r\n${host}\r\n`,
  'no Host': 'GET /v1/orders/1 HTTP/1.1\r\n\r\n',
  'no Host, even for health': 'GET /health/live HTTP/1.1\r\n\r\n',
  'a header without colon': `GET /health/live HTTP/1.1\r\n${host}nonsense\r\n\r\n`,
  'a header name with a space': `GET /health/live HTTP/1.1\r\n${host}x y: 1\r\n\r\n`,
  'a header name that is empty': `GET /health/live HTTP/1.1\r\n${host}: 1\r\n\r\n`,
  'a NUL in a header': `GET /health/live HTTP/1.1\r\n${host}x: a\u0000b\r\n\r\n`,
  'a bare carriage return in a header': `GET /health/live HTTP/1.1\r\n${host}x: a\rb\r\n\r\n`,
  'a header of 100,000 bytes': `GET /health/live HTTP/1.1\r\n${host}x: ${'a'.repeat(100_000)}\r\n\r\n`,
  '5,000 headers': `GET /health/live HTTP/1.1\r\n${host}${'x: 1\r\n'.repeat(5_000)}\r\n`,
  'a path of 100,000 bytes': `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n${host}\r\n`,
  'a length that is negative': post('content-length: -5\r\n', '{}'),
  'a length that is no number': post('content-length: five\r\n', '{}'),
  'two lengths that differ': post('content-length: 2\r\ncontent-length: 3\r\n', '{}'),
  'a length beyond all numbers': post('content-length: 99999999999999999999999\r\n', '{}'),
  'a length beside chunks': post('content-length: 2\r\ntransfer-encoding: chunked\r\n', '0\r\n\r\n'),
  'a transfer coding that does not exist': post('transfer-encoding: unheard\r\n', '{}'),
  'chunks that are not last': post('transfer-encoding: chunked, gzip\r\n', '0\r\n\r\n'),
  'a chunk whose size is no number': post('transfer-encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n'),
  'a chunk longer than its size': post('transfer-encoding: chunked\r\n', '1\r\n{}}}\r\n0\r\n\r\n'),
  'an expectation nobody can meet': post('expect: miracles\r\ncontent-length: 2\r\n', '{}'),
  CONNECT: `CONNECT example.org:443 HTTP/1.1\r\n${host}\r\n`,
}

// What the head of a request decides alone.
const REFUSED_HEADS: [number, string, Record<string, string>][] = [
  [401, 'unauthenticated', { authorization: 'Bearer nobody' }],
  [400, 'idempotency-key-invalid', { 'idempotency-key': '"' }],
  [413, 'payload-too-large', { 'content-length': '5000000' }],
  [415, 'unsupported-media-type', { 'content-type': 'text/plain' }],
]

/** The wire itself: each ends in a 4xx with a problem, or in a closed connection; never in a fault or a wait. */
export async function wire({ trial, api, server }: Bench): Promise<void> {
  for (const [what, bytes] of Object.entries(MALFORMED)) {
    await trial.check(`malformed HTTP: ${what}`, async () => {
      const connection = await trial.connect(server.port)
      connection.send(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
      const answer = await connection.read(1_000)
      if (answer === undefined) return 'closed'
      between(answer.status, 400, 499, 'the status')
      problem(answer, answer.status, codeOf(answer.body))
      return undefined
    })
  }

  await trial.check('a key reused by a request that was malformed is free', async () => {
    created(await api.order('wire', sampleOrder()))
  })

  await trial.check('a client that hangs up in the middle of its headers leaves no trace', async () => {
    const connection = await trial.connect(server.port)
    connection.send('POST /v1/orders HTTP/1.1\r\nhost: 127')
    connection.destroy()
    status(await api.get('/health/live'), 200)
  })

  await trial.check('Expect: 100-continue is answered, then the order is made', async () => {
    const connection = await trial.connect(server.port)
    const body = JSON.stringify(sampleOrder())
    const expecting = { expect: '100-continue', 'content-length': String(Buffer.byteLength(body)) }
    connection.send(orderBytes(freshKey(), '', expecting))
    same(answered(await connection.read(1_000)).status, 100, 'the interim status')
    connection.send(body)
    created(answered(await connection.read()))
  })

  for (const [expected, code, headers] of REFUSED_HEADS) {
    await trial.check(
      `Expect: 100-continue is refused ${expected} ${code} at once, and not told to go on`,
      async () => {
        const connection = await trial.connect(server.port)
        connection.send(
          orderBytes(freshKey(), '', { 'content-length': '10', ...headers, expect: '100-continue' }),
        )
        problem(answered(await connection.read()), expected, code)
      },
    )
  }

  await trial.check('requests behind a wish to change the protocol are answered, in order', async () => {
    const connection = await trial.connect(server.port)
    const body = JSON.stringify(sampleOrder())
    const upgrade = { connection: 'upgrade', upgrade: 'h2c' }
    connection.send(Buffer.concat([orderBytes(freshKey(), body, upgrade), orderBytes(freshKey(), body)]))
    created(answered(await connection.read()))
    created(answered(await connection.read()))
  })

  await trial.check('a client that closes its side behind a whole order gets its answer', async () => {
    const socket = connect({ host: '127.0.0.1', port: server.port, allowHalfOpen: true })
    trial.own(() => void socket.destroy())
    socket.end(orderBytes(freshKey(), JSON.stringify(sampleOrder())))
    matches(await text(socket), /^HTTP\/1\.1 201 /, 'the answer')
  })

  await trial.check('requests sent in one go on one socket are answered in order', async () => {
    const connection = await trial.connect(server.port)
    const orders = Array.from({ length: 5 }, (_, index) => sampleOrder({ reference: `pipelined ${index}` }))
    const bytes = orders.map(order => orderBytes(freshKey(), JSON.stringify(order)))
    connection.send(Buffer.concat(bytes))
    for (const { reference } of orders)
      same(created(answered(await connection.read())).reference, reference, 'reference')
  })

  await trial.check('a refused request does not spoil the next one on its socket', async () => {
    const connection = await trial.connect(server.port)
    for (const body of ['{', JSON.stringify({ ...sampleOrder(), currency: 'euro' })]) {
      connection.send(orderBytes(freshKey(), body))
      problem(answered(await connection.read()), 400, 'malformed-json', 'validation-failed')
    }
    connection.send(orderBytes(freshKey(), JSON.stringify(sampleOrder())))
    created(answered(await connection.read()))
    demand(!connection.closed, 'the socket still open')
  })
}

function codeOf(body: string): string {
  const { code } = JSON.parse(body) as { code?: unknown }
  return String(code)
}
