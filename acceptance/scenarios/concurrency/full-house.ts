import { tally } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { type Connection, requestBytes } from '../../support/connection.ts'
import { answered, created, demand, problem, status } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import { promptly } from '../../support/promptly.ts'
import { freshKey, orderBytes, sampleOrder } from '../../support/samples.ts'
import { until } from '../../support/until.ts'
import { idle } from './idle.ts'

const PERMITS = 60

/** While each permit is held by a request whose body has not come whole. */
export async function fullHouse({ trial, nobody, server, admin }: Bench): Promise<void> {
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
    const ask = async () => {
      const connection = await trial.connect(server.port)
      connection.send(orderBytes(freshKey(), body))
      return [answered(await connection.read())]
    }
    await promptly([0, 20], ask, answer => problem(answer, 429, 'concurrency-limit'))
  })

  await trial.check('all permits held: Expect: 100-continue is refused without a 100', async () => {
    const connection = await trial.connect(server.port)
    connection.send(orderBytes(freshKey(), body, { expect: '100-continue' }).subarray(0, -body.length))
    problem(answered(await connection.read()), 429, 'concurrency-limit')
  })

  await trial.check('all permits held: a key that does not exist needs no permit to be refused', async () => {
    const connection = await trial.connect(server.port)
    connection.send(requestBytes('GET', '/v1/orders/nothing', { authorization: 'Bearer nobody' }))
    problem(answered(await connection.read()), 401, 'unauthenticated')
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
