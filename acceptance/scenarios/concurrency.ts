import { type Answer, tally } from '../support/answer.ts'
import { type Bench, openBench, WIDE_BUDGETS } from '../support/bench.ts'
import { type Connection, requestBytes } from '../support/connection.ts'
import { answered, between, created, demand, problem, same, status } from '../support/expect.ts'
import { KEYS } from '../support/keys.ts'
import { Metrics } from '../support/metrics.ts'
import { freshKey, sampleOrder } from '../support/samples.ts'
import type { Scenario, Trial } from '../support/trial.ts'
import { until } from '../support/until.ts'

const PERMITS = 60

/** More at once than there is room for: some are served, the rest are told, and nobody meets a fault. */
export const concurrency: Scenario = {
  name: 'concurrency',
  limitMs: 60_000,
  async play(trial) {
    await storm(await openBench(trial))
    await oneKey(await openBench(trial))
    await slowStorms(await openBench(trial))
    await full(await openBench(trial, WIDE_BUDGETS))
  },
}

async function storm({ trial, api, pricing, server, admin }: Bench): Promise<void> {
  await warmUp(api)

  await trial.check('150 requests released together: only 201 and 429, and both', async () => {
    pricing.behaviour = { kind: 'answer', delayMs: 20 }
    const answers = await released(trial, server.port, 150, () => freshKey())
    for (const answer of answers) {
      if (answer.status === 201) created(answer)
      else problem(answer, 429, 'concurrency-limit')
    }
    const served = answers.filter(answer => answer.status === 201).length
    between(served, 1, 149, 'the number of orders')
    return tally(answers)
  })

  await trial.check('refusals are counted, and nothing is in flight after the storm', async () => {
    const metrics = await idle(admin)
    const refused = metrics.sum('punctual_requests_total', { status: '429', outcome: 'rejected' })
    demand(refused > 0, 'requests with 429 counted')
    same(
      metrics.sum('punctual_admission_rejected_total', { scope: 'global' }),
      refused,
      'refusals at the gate',
    )
    same(metrics.sum('punctual_requests_total', { outcome: 'client_abort' }), 0, 'hang-ups')
    return `${refused} refused`
  })
}

async function oneKey({ trial, api, pricing, server }: Bench): Promise<void> {
  await warmUp(api)

  await trial.check(
    '50 in parallel with one key: one order, fifty identical answers, one of them the first',
    async () => {
      const [key, body] = [freshKey(), JSON.stringify(sampleOrder({ reference: 'only once' }))]
      pricing.behaviour = { kind: 'answer', delayMs: 5 }
      const answers = await released(trial, server.port, 50, () => key, body)
      for (const answer of answers) status(answer, 201)
      for (const name of ['location', 'etag']) {
        same(new Set(answers.map(({ headers }) => headers[name])).size, 1, `the number of different ${name}`)
      }
      same(new Set(answers.map(answer => answer.body)).size, 1, 'the number of different bodies')
      const first = answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)
      same(first.length, 1, 'the number of answers that are no replay')
      created(first[0] as Answer)
      created(await api.order(key, body), true)
      return tally(answers)
    },
  )

  await trial.check(
    'two requests in parallel with one key that differ: one order, one conflict',
    async () => {
      const key = freshKey()
      const answers = await Promise.all([api.order(key, sampleOrder()), api.order(key, sampleOrder())])
      same(
        answers
          .map(answer => answer.status)
          .sort()
          .join(),
        '201,409',
        'the statuses',
      )
      return tally(answers)
    },
  )
}

async function slowStorms({ trial, pricing, server, admin }: Bench): Promise<void> {
  for (const round of ['first', 'second']) {
    await trial.check(
      `180 in parallel while pricing takes 300 ms, ${round} round: not one fault`,
      async () => {
        pricing.behaviour = { kind: 'answer', delayMs: 300 }
        const answers = await released(trial, server.port, 180, () => freshKey())
        for (const answer of answers) {
          if (answer.status === 429) problem(answer, 429, 'concurrency-limit')
          else if (answer.status === 503) problem(answer, 503, 'pricing-unavailable')
          else same(problem(answer, 504, 'budget-exhausted').committed, 'no', 'committed')
        }
        return tally(answers)
      },
    )
  }

  await trial.check('after both rounds nothing is in flight and no error was ours', async () => {
    const metrics = await idle(admin)
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    same(metrics.sum('punctual_requests_total', { status: '201' }), 0, 'orders')
    return '0'
  })

  await trial.check('after both rounds orders are made again', async () => {
    pricing.behaviour = { kind: 'answer' }
    const api = trial.client(server.port, KEYS.full)
    await until('an order', async () => (await api.order(freshKey(), sampleOrder())).status === 201, 10_000)
  })
}

/** While each permit is held by a request whose body has not come whole. */
async function full({ trial, nobody, server, admin }: Bench): Promise<void> {
  const body = JSON.stringify(sampleOrder())
  const holders: Connection[] = []
  for (let index = 0; index < PERMITS; index++) {
    const holder = await trial.connect(server.port)
    holder.send(orderBytes(freshKey(), body).subarray(0, -1))
    holders.push(holder)
  }
  await until('all permits to be held', async () => {
    const metrics = await Metrics.read(admin)
    return metrics.sum('punctual_admission_in_flight') === PERMITS
  })

  await trial.check('all permits held: the next request is refused at once', async () => {
    const connection = await trial.connect(server.port)
    connection.send(orderBytes(freshKey(), body))
    const answer = answered(await connection.read())
    problem(answer, 429, 'concurrency-limit')
    between(answer.elapsedMs, 0, 50, 'the time to the answer, in ms,')
  })

  await trial.check('all permits held: Expect: 100-continue is refused without a 100', async () => {
    const connection = await trial.connect(server.port)
    connection.send(orderBytes(freshKey(), body, { expect: '100-continue' }).subarray(0, -body.length))
    problem(answered(await connection.read()), 429, 'concurrency-limit')
  })

  await trial.check('all permits held: a key that does not exist costs no judgement either', async () => {
    const connection = await trial.connect(server.port)
    connection.send(requestBytes('GET', '/v1/orders/nothing', { authorization: 'Bearer nobody' }))
    problem(answered(await connection.read()), 429, 'concurrency-limit')
  })

  await trial.check('all permits held: health and metrics answer', async () => {
    for (const path of ['/health/live', '/health/ready']) status(await nobody.get(path), 200)
    status(await admin.get('/metrics'), 200)
  })

  const keptAlive = await trial.connect(server.port)
  await trial.check('all permits held: a refused request leaves its socket open, body and all', async () => {
    for (const text of [body, JSON.stringify({ pad: ' '.repeat(20_000) }), body]) {
      keptAlive.send(orderBytes(freshKey(), text))
      problem(answered(await keptAlive.read()), 429, 'concurrency-limit')
    }
    demand(!keptAlive.closed, 'the socket still open')
  })

  await trial.check('the bodies come whole: every holder gets its order', async () => {
    for (const holder of holders) holder.send(body.slice(-1))
    const answers = await Promise.all(holders.map(async holder => answered(await holder.read())))
    for (const answer of answers) created(answer)
    return tally(answers)
  })

  await trial.check('with permits free again, the socket of the refused request makes an order', async () => {
    await idle(admin)
    keptAlive.send(orderBytes(freshKey(), body))
    created(answered(await keptAlive.read()))
  })
}

/** The promises are about a running instance: the first requests of a process run code that is not compiled yet. */
async function warmUp(api: Bench['api']): Promise<void> {
  for (let round = 0; round < 10; round++) {
    await Promise.all(Array.from({ length: 20 }, () => api.order(freshKey(), sampleOrder())))
  }
}

/** Connects `count` sockets, then writes a request on each in one go, and gives the answers. */
async function released(
  trial: Trial,
  port: number,
  count: number,
  key: () => string,
  body?: string,
): Promise<Answer[]> {
  const connections = await Promise.all(Array.from({ length: count }, () => trial.connect(port)))
  const requests = connections.map(() => orderBytes(key(), body ?? JSON.stringify(sampleOrder())))
  for (const [index, connection] of connections.entries()) connection.send(requests[index] as Buffer)
  const answers = await Promise.all(connections.map(connection => connection.read()))
  for (const connection of connections) connection.destroy()
  return answers.map(answered)
}

function orderBytes(key: string, body: string, extra: Record<string, string> = {}): Buffer {
  const headers = {
    authorization: `Bearer ${KEYS.full}`,
    'content-type': 'application/json',
    'idempotency-key': key,
    ...extra,
  }
  return requestBytes('POST', '/v1/orders', headers, body)
}

/** The metrics once no request is in flight. */
function idle(admin: Bench['admin']): Promise<Metrics> {
  return until('nothing to be in flight', async () => {
    const metrics = await Metrics.read(admin)
    return metrics.sum('punctual_admission_in_flight') === 0 && metrics
  })
}
