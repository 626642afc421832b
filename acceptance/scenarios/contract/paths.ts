import { jsonOf } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { created, demand, matches, plain, problem, same, status } from '../../support/expect.ts'
import { freshKey, sampleOrder, sampleText } from '../../support/samples.ts'

const CODES = [
  'malformed-json',
  'validation-failed',
  'unknown-sku',
  'idempotency-key-missing',
  'idempotency-key-invalid',
  'unauthenticated',
  'forbidden',
  'not-found',
  'method-not-allowed',
  'idempotency-conflict',
  'order-state-conflict',
  'payload-too-large',
  'unsupported-media-type',
  'concurrency-limit',
  'internal',
  'pricing-unavailable',
  'store-unavailable',
  'warming-up',
  'shutting-down',
  'budget-exhausted',
]

/** Paths, methods and media types. */
export async function paths({ trial, api, nobody }: Bench): Promise<void> {
  for (const path of [
    '/',
    '/v1',
    '/v2/orders',
    '/v1/orders/',
    '/v1/orders/a/b',
    '/v1/orders/01920000-0000-7000-8000-000000000000/cancel/',
    '/v1/orders/01920000-0000-7000-8000-000000000000/CANCEL',
    '/V1/ORDERS',
    '/metrics',
    '/config',
    '/favicon.ico',
  ]) {
    await trial.check(`${path} is not found`, async () => {
      problem(await api.get(path), 404, 'not-found')
    })
  }

  const allowed: [path: string, methods: string[], allow: string][] = [
    ['/v1/orders', ['PUT', 'PATCH', 'DELETE', 'OPTIONS'], 'GET, HEAD, POST'],
    ['/v1/orders/01920000-0000-7000-8000-000000000000', ['POST', 'PUT', 'PATCH', 'DELETE'], 'GET, HEAD'],
    [
      '/v1/orders/01920000-0000-7000-8000-000000000000/cancel',
      ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
      'POST',
    ],
    ['/health/live', ['POST', 'DELETE'], 'GET, HEAD'],
    ['/health/ready', ['POST', 'DELETE'], 'GET, HEAD'],
    ['/problems/not-found', ['POST', 'DELETE'], 'GET, HEAD'],
  ]
  for (const [path, methods, allow] of allowed) {
    for (const method of methods) {
      await trial.check(`${method} ${path} is not allowed, Allow says what is`, async () => {
        const answer = await api.send(method, path)
        problem(answer, 405, 'method-not-allowed')
        same(answer.headers.allow, allow, 'Allow')
      })
    }
  }

  await trial.check('HEAD of a cancel is not allowed either, and has no body', async () => {
    const answer = await api.send('HEAD', '/v1/orders/01920000-0000-7000-8000-000000000000/cancel')
    status(answer, 405)
    same(answer.headers.allow, 'POST', 'Allow')
    same(answer.body, '', 'the body')
  })

  for (const path of ['/health/live', '/health/ready', '/problems/not-found']) {
    await trial.check(`HEAD ${path} follows GET`, async () => {
      const [get, head] = [await nobody.get(path), await nobody.send('HEAD', path)]
      status(head, get.status)
      plain(head)
      same(head.body, '', 'the body')
      same(head.headers['content-type'], get.headers['content-type'], 'Content-Type')
    })
  }

  await trial.check('/health/ready says ready', async () => {
    same(jsonOf(await nobody.get('/health/ready')).status, 'ready', 'status')
  })

  for (const code of CODES) {
    await trial.check(`/problems/${code} explains the problem`, async () => {
      const answer = await nobody.get(`/problems/${code}`)
      status(answer, 200)
      plain(answer)
      demand(answer.body.includes(code), `the code in its own page, saw ${answer.body.slice(0, 200)}`)
    })
  }

  for (const code of ['nothing', '__proto__', 'toString', 'constructor']) {
    await trial.check(`/problems/${code} is not found`, async () => {
      problem(await nobody.get(`/problems/${code}`), 404, 'not-found')
    })
  }

  const refused: Record<string, Record<string, string>> = {
    'text/plain': { 'content-type': 'text/plain' },
    'application/xml': { 'content-type': 'application/xml' },
    'application/x-www-form-urlencoded': { 'content-type': 'application/x-www-form-urlencoded' },
    'application/jsonp': { 'content-type': 'application/jsonp' },
    'text/json': { 'content-type': 'text/json' },
    'no media type at all': { 'content-type': 'json' },
    'an empty type': { 'content-type': '' },
    'charset iso-8859-1': { 'content-type': 'application/json; charset=iso-8859-1' },
    'charset utf-16': { 'content-type': 'application/json; charset=utf-16' },
    'content-encoding gzip': { 'content-encoding': 'gzip' },
    'content-encoding br': { 'content-encoding': 'br' },
    'content-encoding deflate': { 'content-encoding': 'deflate' },
    'content-encoding unheard': { 'content-encoding': 'unheard' },
  }
  for (const [what, headers] of Object.entries(refused)) {
    await trial.check(`415: ${what}`, async () => {
      const key = freshKey()
      problem(await api.order(key, sampleOrder(), headers), 415, 'unsupported-media-type')
      created(await api.order(key, sampleOrder()))
    })
  }

  await trial.check('415: no content type', async () => {
    const answer = await api.send('POST', '/v1/orders', { 'idempotency-key': freshKey() }, sampleText('', ''))
    problem(answer, 415, 'unsupported-media-type')
  })

  for (const type of ['application/json; charset=utf-8', 'Application/JSON; Charset="UTF-8"']) {
    await trial.check(`accepted: ${type}`, async () => {
      created(await api.order(freshKey(), sampleOrder(), { 'content-type': type }))
    })
  }

  await trial.check('an answer that carries text says that it is UTF-8 or JSON', async () => {
    for (const path of ['/health/live', '/problems/not-found']) {
      const { headers } = await nobody.get(path)
      matches(headers['content-type'], /json|charset=utf-8/i, 'Content-Type')
    }
  })
}
