import { demand, matches, same } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshCustomer, freshKey, sampleOrder } from '../../support/samples.ts'
import type { Trial } from '../../support/trial.ts'
import { passed, until } from '../../support/until.ts'
import { openStage, place, placeMany, revoke, type Stage, settled } from './stage.ts'

const MEMBERS = 'id,level,msg,service,subject,tenant,time,traceparent,type'
// The backlog is measured once a second.
const MEASURE_LIMIT_MS = 3_000

/** Where events may go, where they may not, and what is left of them afterwards. */
export async function sinks(trial: Trial): Promise<void> {
  await privateTargets(trial)
  await log(await openStage(trial, { outbox: { sink: 'log' } }))
  await none(await openStage(trial, { outbox: { sink: 'none' } }))
  await swept(trial)
}

async function privateTargets(trial: Trial): Promise<void> {
  const hosts = {
    'an address of loopback': '127.0.0.1',
    'a name of loopback': 'localhost',
    'loopback as one number': '2130706433',
    'loopback inside of IPv6': '[::ffff:127.0.0.1]',
    'no address in particular': '0.0.0.0',
  }
  for (const [what, host] of Object.entries(hosts)) {
    await trial.check(
      `a webhook at ${what} is not called unless it is allowed; its event waits`,
      async () => {
        const stage = await openStage(trial, { host, outbox: { webhook: { allowPrivateNetworks: false } } })
        const { consumer, server } = stage
        await place(stage)
        await until('two deliveries to fail', async () => (await read(stage, 'failed_total')) >= 2)
        await until('a backlog of 1', async () => (await read(stage, 'backlog')) === 1, MEASURE_LIMIT_MS)
        same(consumer.arrivals.length + consumer.faults.length, 0, 'the calls to the target')
        same(await read(stage, 'delivered_total'), 0, 'punctual_outbox_delivered_total')
        const [line, ...more] = linesOf(stage, 'event sink failing')
        same(more.length, 0, 'further lines about it')
        matches(line, /private network/, 'the line about it in the log')
        const others = server.lines.filter(line => !line.includes('"msg":"configuration"'))
        const told = others.filter(line => line.includes('hook') || line.includes(`:${consumer.port}`))
        same(told.length, 0, 'the lines that tell where it was')
        const secrets = server.lines.filter(line => line.includes(consumer.secret))
        same(secrets.length, 0, 'the lines with the secret')
        await server.stop()
        return (JSON.parse(String(line)) as { reason: string }).reason
      },
    )
  }

  await trial.check('a webhook at a name of loopback is called once that is allowed', async () => {
    const stage = await openStage(trial, { host: 'localhost' })
    await place(stage)
    const summary = await settled(stage)
    await stage.server.stop()
    return summary
  })
}

async function log(stage: Stage): Promise<void> {
  const { trial, as, owed, server } = stage
  const eventLines = () => linesOf(stage, 'event').map(line => JSON.parse(line) as Record<string, string>)

  await trial.check(
    'the sink log writes a line for each event, each order in order, and nothing of an order',
    async () => {
      const [customerId, reference] = [freshCustomer(), 'a reference of its own']
      const answer = await as.masked.order(freshKey(), sampleOrder({ customerId, reference }))
      same(answer.status, 201, 'the status')
      const masked = String(JSON.parse(answer.body).id)
      owed.set(masked, ['order.created'])
      await placeMany(stage, 20)
      const count = [...owed.values()].flat().length
      await until(`${count} lines`, () => eventLines().length >= count)
      for (const [id, types] of owed) {
        const lines = eventLines().filter(({ subject }) => subject === id)
        same(lines.map(({ type }) => type).join(), types.join(), `the lines of ${id}`)
      }
      for (const line of eventLines()) {
        const members = Object.keys(line).filter(member => member !== 'time')
        same([...members, 'time'].sort().join(), MEMBERS, 'the members of a line')
        same(line.tenant, 'one', 'tenant')
      }
      const text = server.lines.join('\n')
      demand(
        !text.includes(customerId) && !text.includes(reference),
        'no customer and no reference in the log',
      )
      for (const line of server.lines) JSON.parse(line)
      return `${count} lines`
    },
  )

  await trial.check('what the log was told of counts as delivered', async () => {
    const count = [...owed.values()].flat().length
    same(await read(stage, 'delivered_total'), count, 'punctual_outbox_delivered_total')
    await until('no backlog', async () => (await read(stage, 'backlog')) === 0, MEASURE_LIMIT_MS)
    same(linesOf(stage, 'event').length, count, 'the lines afterwards')
    same(stage.consumer.arrivals.length, 0, 'the calls to the webhook')
  })
}

async function none(stage: Stage): Promise<void> {
  await stage.trial.check('the sink none tells nobody, and leaves nothing waiting', async () => {
    await placeMany(stage, 10)
    const count = [...stage.owed.values()].flat().length
    await until('all to be counted', async () => (await read(stage, 'delivered_total')) === count)
    await until('no backlog', async () => (await read(stage, 'backlog')) === 0, MEASURE_LIMIT_MS)
    same(linesOf(stage, 'event').length, 0, 'the lines about events')
    same(stage.consumer.arrivals.length, 0, 'the calls to the webhook')
    return `${count} events`
  })
}

async function swept(trial: Trial): Promise<void> {
  const SWEEP_INTERVAL_MS = 10
  const stage = await openStage(trial, {
    outbox: { deliveredRetentionHours: 0 },
    config: { idempotency: { sweepIntervalMs: SWEEP_INTERVAL_MS, sweepBatch: 1 } },
  })
  const { consumer, api, owed } = stage
  consumer.react = ({ data }) => ({ kind: data.reference === 'held' ? 'stall' : 'accept' })

  await trial.check(
    'delivered events are swept from between those that wait, and no key with them',
    async () => {
      const [key, request] = [freshKey(), sampleOrder()]
      const first = await api.order(key, request)
      owed.set(JSON.parse(first.body).id, ['order.created'])
      const old = await place(stage)
      const held = await place(stage, 'held')
      await placeMany(stage, 10)
      await Promise.all([...owed.keys()].filter(id => id !== held.id).map(id => consumer.took(id)))
      // Enough for several times all that was delivered.
      await passed(50 * SWEEP_INTERVAL_MS)
      const again = await api.order(key, request)
      same(again.headers['idempotent-replayed'], 'true', 'Idempotent-Replayed')
      same(again.body, first.body, 'the body')
      // Its first event is gone; the second is owed all the same.
      await revoke(stage, old.id)
      await revoke(stage, held.id)
      consumer.react = () => ({ kind: 'accept' })
      return settled(stage, 8_000)
    },
  )
}

function linesOf({ server }: Stage, msg: string): readonly string[] {
  return server.lines.filter(line => line.includes(`"msg":"${msg}"`))
}

async function read({ admin }: Stage, name: string): Promise<number> {
  return (await Metrics.read(admin)).sum(`punctual_outbox_${name}`)
}
