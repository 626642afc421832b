import Database from 'better-sqlite3'
import type { Answer } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { created, pageOf, problem, same, status } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import { eventually, promptly } from '../../support/promptly.ts'
import { freshCustomer, freshKey, type SampleOrder, sampleOrder } from '../../support/samples.ts'
import { until } from '../../support/until.ts'

const ANSWER_LIMIT_MS = 250
const REQUESTS = 10

/** Another process holds the database locked: everyone is told in time, nothing is half done, and it passes. */
export async function lockedStore({ trial, api, nobody, server, admin }: Bench): Promise<void> {
  const customerId = freshCustomer()
  const before = await eventually(api, freshKey(), sampleOrder({ customerId }))
  const { id } = created(before)
  const refused: { key: string; request: SampleOrder }[] = []
  const ask = () => {
    const order = { key: freshKey(), request: sampleOrder() }
    refused.push(order)
    return api.order(order.key, order.request)
  }
  const lock = new Database(server.storePath)
  trial.own(() => {
    lock.close()
  })
  lock.exec('BEGIN IMMEDIATE')

  await trial.check('while the store is locked, requests in parallel end inside their budget', async () => {
    const all = () => Promise.all(Array.from({ length: REQUESTS }, ask))
    await promptly([0, ANSWER_LIMIT_MS], all, unstored)
  })

  await trial.check('while the store is locked, requests one by one end inside their budget', async () => {
    for (let index = 0; index < REQUESTS; index++) {
      await promptly([0, ANSWER_LIMIT_MS], async () => [await ask()], unstored)
    }
  })

  const cancelKey = freshKey()
  await trial.check('while the store is locked, a cancel ends inside its budget', async () => {
    await promptly([0, ANSWER_LIMIT_MS], async () => [await api.cancel(cancelKey, id)], unstored)
  })

  await trial.check('while the store is locked, orders can be read and listed', async () => {
    const read = async () => [await api.get(`/v1/orders/${id}`)]
    await promptly([0, 50], read, answer => {
      status(answer, 200)
      same(answer.body, before.body, 'the body')
    })
    const list = async () => [await api.list({ customerId, limit: '1' })]
    await promptly([0, 50], list, answer => same(pageOf(answer).orders[0]?.id, id, 'the id'))
  })

  await trial.check('while the store is locked, readiness says degraded and liveness does not', async () => {
    const answer = await until('readiness to be 503', async () => {
      const answer = await nobody.get('/health/ready')
      return answer.status === 503 && answer
    })
    same((JSON.parse(answer.body) as { status?: unknown }).status, 'degraded', 'status')
    status(await nobody.get('/health/live'), 200)
  })

  lock.exec('ROLLBACK')

  await trial.check('once it is free, orders are made again without a restart', async () => {
    await until('an order', async () => (await api.order(freshKey(), sampleOrder())).status === 201)
  })

  await trial.check('nothing of what was refused was stored: each key does now what it was for', async () => {
    for (const { key, request } of refused) created(await eventually(api, key, request))
    same((await api.get(`/v1/orders/${id}`)).body, before.body, 'the order that was not cancelled')
    await until('the cancel', async () => (await api.cancel(cancelKey, id)).status === 200)
  })

  await trial.check('once it is free, readiness comes back', async () => {
    await until('readiness to be 200', async () => (await nobody.get('/health/ready')).status === 200)
  })

  await trial.check('a locked store is no uncontrolled error', async () => {
    const metrics = await Metrics.read(admin)
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    same(metrics.sum('punctual_admission_in_flight'), 0, 'requests in flight')
    return '0'
  })
}

function unstored(answer: Answer): void {
  if (answer.status === 503) problem(answer, 503, 'store-unavailable')
  else same(problem(answer, 504, 'budget-exhausted').committed, 'no', 'committed')
}
