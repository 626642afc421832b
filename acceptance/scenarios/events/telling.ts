import { jsonOf } from '../../support/answer.ts'
import { between, demand, matches, same, status } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'
import { openStage, place, placeMany, type Stage, settled } from './stage.ts'

// The backlog is measured once a second.
const MEASURE_LIMIT_MS = 3_000
const WAITING = 5

/** What an operator and a balancer are told of the outbox: the truth, and in time. */
export async function telling(trial: Trial): Promise<void> {
  const outbox = { degradedAfterSeconds: 1 }
  const stage = await openStage(trial, { outbox })
  await readiness(stage)
  await metrics(stage)
}

async function readiness(stage: Stage): Promise<void> {
  const { trial, consumer, api } = stage
  const outbox = async () => {
    const answer = await api.get('/health/ready')
    status(answer, 200)
    const { status: ready, checks } = jsonOf(answer) as { status: unknown; checks: Record<string, string> }
    same(ready, 'ready', 'the status of readiness')
    same(checks.store, 'ok', 'the detail of the store')
    return String(checks.outbox)
  }

  await trial.check('events that wait too long are told by readiness, which stays 200', async () => {
    same(await outbox(), 'ok', 'the detail before')
    consumer.react = () => ({ kind: 'say', status: 500 })
    const sentMs = performance.now()
    await place(stage)
    const detail = await until(
      'another detail than ok',
      async () => {
        const detail = await outbox()
        return detail !== 'ok' && detail
      },
      MEASURE_LIMIT_MS,
    )
    between(performance.now() - sentMs, 1_000, 2_500, 'the time until it was told, in ms,')
    matches(detail, /1 s\b/, 'the detail')
    demand(!detail.includes('127.0.0.1') && !detail.includes('http'), `no URL in it, saw ${detail}`)
    return detail
  })

  await trial.check('once they are delivered, readiness says ok again', async () => {
    consumer.react = () => ({ kind: 'accept' })
    const summary = await settled(stage)
    await until('the detail to be ok', async () => (await outbox()) === 'ok', MEASURE_LIMIT_MS)
    return summary
  })
}

async function metrics(stage: Stage): Promise<void> {
  const { trial, consumer, admin } = stage
  const read = async (name: string) => (await Metrics.read(admin)).sum(`punctual_outbox_${name}`)

  await trial.check('the backlog and the age of its oldest event are true', async () => {
    await until('no backlog', async () => (await read('backlog')) === 0, MEASURE_LIMIT_MS)
    same(await read('oldest_age_seconds'), 0, 'the age while nothing waits')
    consumer.react = () => ({ kind: 'say', status: 500 })
    const sentMs = performance.now()
    await place(stage)
    const committedMs = performance.now()
    for (let count = 1; count < WAITING; count++) await place(stage)
    await until(`a backlog of ${WAITING}`, async () => (await read('backlog')) === WAITING, MEASURE_LIMIT_MS)
    const askedMs = performance.now()
    const age = await read('oldest_age_seconds')
    const leastMs = askedMs - committedMs
    // The age is by the wall clock, in whole milliseconds.
    between(age * 1_000, leastMs - 2, performance.now() - sentMs + 2, 'the age of the oldest event, in ms,')
    return `${WAITING} events, ${age.toFixed(3)} s`
  })

  await trial.check('every delivery is counted, as delivered or as failed', async () => {
    consumer.react = ({ data }, nth) => ({ kind: nth < 3 && data.reference ? 'reset' : 'accept' })
    await placeMany(stage, 10, 'twice')
    await settled(stage)
    const accepted = consumer.arrivals.filter(({ reaction }) => reaction.kind === 'accept').length
    await until('all to be counted', async () => (await read('delivered_total')) >= accepted)
    same(await read('delivered_total'), accepted, 'punctual_outbox_delivered_total')
    const failed = consumer.arrivals.length - accepted
    same(await read('failed_total'), failed, 'punctual_outbox_failed_total')
    await until('no backlog', async () => (await read('backlog')) === 0, MEASURE_LIMIT_MS)
    same(await read('oldest_age_seconds'), 0, 'the age once nothing waits')
    same(await read('dead'), 0, 'punctual_outbox_dead')
    return `${accepted} delivered, ${failed} failed`
  })

  await trial.check(
    'a sink that fails everything is one line of the log, and one more when it recovers',
    async () => {
      const { server } = stage
      const lines = (msg: string) => server.lines.filter(line => line.includes(`"msg":"${msg}"`))
      const before = lines('event sink failing').length
      consumer.react = () => ({ kind: 'say', status: 502 })
      await placeMany(stage, 10)
      const { length } = consumer.arrivals
      await consumer.arrived(length + 30)
      consumer.react = () => ({ kind: 'accept' })
      const summary = await settled(stage)
      await until('a line about its recovery', () => lines('event sink recovered').length > before)
      const failing = lines('event sink failing')
      same(failing.length, before + 1, 'the lines about its failing')
      demand(!String(failing.at(-1)).includes('127.0.0.1'), `no URL in the line, saw ${failing.at(-1)}`)
      matches(failing.at(-1), /\b502\b/, 'the reason')
      return summary
    },
  )
}
