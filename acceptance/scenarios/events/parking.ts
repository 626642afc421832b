import { jsonOf } from '../../support/answer.ts'
import type { Client } from '../../support/client.ts'
import type { CloudEvent, Reaction } from '../../support/consumer.ts'
import { demand, matches, problem, same, status } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'
import { openStage, place, revoke, type Stage, settled } from './stage.ts'

const MAX_ATTEMPTS = 3
const MEMBERS = 'atMs,attempts,id,reason,sequence,subject,tenant,type'
const REFUSED: Record<string, string> = {
  'no body': '',
  'no JSON': '{"ids":',
  'an empty object': '{}',
  'another word': '{"ids":"some"}',
  'no ids': '{"ids":[]}',
  'an id that is none': '{"ids":["1"]}',
  'an unknown member': '{"ids":"all","force":true}',
}

export interface Dead {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly attempts: number
  readonly reason: string
  readonly sequence: number
}

/** Events that are given up on: listed, kept behind one another, and brought back by an operator. */
export async function parking(trial: Trial): Promise<void> {
  const outbox = { maxAttempts: MAX_ATTEMPTS, retryDelayMs: 20, retryMaxDelayMs: 20 }
  const stage = await openStage(trial, { outbox })
  let answer: Reaction = { kind: 'say', status: 410 }
  stage.consumer.react = ({ data }) => (data.reference === 'bad' ? answer : { kind: 'accept' })
  await gone(stage)
  answer = { kind: 'say', status: 500 }
  await exhausted(stage)
  answer = { kind: 'accept' }
  await redriven(stage)
  await interfaces(stage)
}

async function gone(stage: Stage): Promise<void> {
  const { trial, consumer, admin, server } = stage
  let id = ''

  await trial.check('410 parks an event at once', async () => {
    id = (await place(stage, 'bad')).id
    const [dead] = await deadOf(admin, id, 1)
    same(dead?.type, 'order.created', 'type')
    same(dead?.attempts, 1, 'attempts')
    matches(dead?.reason, /\b410\b/, 'reason')
    same(
      Object.keys(dead ?? {})
        .sort()
        .join(),
      MEMBERS,
      'the members of a dead event',
    )
    await settledBut(stage)
    same(arrivals(stage, id), 'order.created', 'the deliveries')
    const lines = server.lines.filter(line => line.includes('"msg":"event parked"'))
    same(lines.length, 1, 'the lines about it in the log')
    demand(String(lines[0]).includes(String(dead?.id)), `its id in the log, saw ${lines[0]}`)
    return String(dead?.reason)
  })

  await trial.check('its cancellation is parked behind it, untried', async () => {
    await revoke(stage, id)
    const [, dead] = await deadOf(admin, id, 2)
    same(dead?.type, 'order.cancelled', 'type')
    same(dead?.attempts, 0, 'attempts')
    matches(dead?.reason, /earlier/, 'reason')
    await settledBut(stage)
    same(arrivals(stage, id), 'order.created', 'the deliveries')
    return String(dead?.reason)
  })

  await trial.check('brought back, the second of an order brings the first along, ahead of it', async () => {
    const [first, second] = await deadOf(admin, id, 2)
    const before = consumer.arrivalsOf(String(first?.id)).length
    same(await redrive(admin, [String(second?.id)]), 2, 'redriven')
    await until('the first to be tried again', () => consumer.arrivalsOf(String(first?.id)).length > before)
    await deadOf(admin, id, 2)
    await settledBut(stage)
    same(consumer.arrivalsOf(String(second?.id)).length, 0, 'the deliveries of the second')
    same(consumer.typesOf(id).length, 0, 'the events taken')
  })
}

async function exhausted(stage: Stage): Promise<void> {
  const { trial, consumer, admin } = stage
  let id = ''

  await trial.check(`an event that fails ${MAX_ATTEMPTS} times is parked`, async () => {
    id = (await place(stage, 'bad')).id
    await until('its first delivery', () => arrivals(stage, id) !== '')
    await revoke(stage, id)
    const [first, second] = await deadOf(admin, id, 2)
    same(first?.attempts, MAX_ATTEMPTS, 'attempts')
    matches(first?.reason, /\b500\b/, 'reason')
    same(second?.attempts, 0, 'the attempts of its cancellation')
    await settledBut(stage)
    same(consumer.arrivalsOf(String(first?.id)).length, MAX_ATTEMPTS, 'the deliveries')
    same(consumer.arrivalsOf(String(second?.id)).length, 0, 'the deliveries of its cancellation')
    return `${first?.reason}, ${first?.attempts} attempts`
  })

  await trial.check('brought back, it has all its attempts again', async () => {
    const [first] = await deadOf(admin, id, 2)
    same(await redrive(admin, [String(first?.id)]), 1, 'redriven')
    const count = () => consumer.arrivalsOf(String(first?.id)).length
    await until('its last delivery', () => count() === 2 * MAX_ATTEMPTS)
    await deadOf(admin, id, 2)
    same(count(), 2 * MAX_ATTEMPTS, 'the deliveries')
  })

  await trial.check('the metrics count what was given up on', async () => {
    const dead = async () => (await Metrics.read(admin)).sum('punctual_outbox_dead')
    await until('punctual_outbox_dead to be 4', async () => (await dead()) === 4, 3_000)
    await until(
      'a backlog without them',
      async () => (await Metrics.read(admin)).sum('punctual_outbox_backlog') === 0,
      3_000,
    )
  })
}

async function redriven(stage: Stage): Promise<void> {
  const { trial, consumer, admin } = stage

  await trial.check('the list of dead events has pages', async () => {
    const all = await deadEvents(admin)
    same(all.length, 4, 'the dead events')
    const paged: Dead[] = []
    for (let after = 0; paged.length < all.length; ) {
      const page = jsonOf(await admin.get(`/outbox/dead?limit=3&after=${after}`))
      paged.push(...(page.events as Dead[]))
      after = Number(page.next)
    }
    same(JSON.stringify(paged), JSON.stringify(all), 'the pages together')
    same((await deadEvents(admin, `?after=${all.at(-1)?.sequence}`)).length, 0, 'those after the last')
  })

  await trial.check('by id, the first of an order comes back and the second stays', async () => {
    const [first] = await deadEvents(admin)
    same(await redrive(admin, [String(first?.id), '01920000-0000-7000-8000-000000000000']), 1, 'redriven')
    await consumer.took(String(first?.subject))
    same(await redrive(admin, [String(first?.id)]), 0, 'redriven a second time')
    same((await deadEvents(admin)).length, 3, 'the dead events left')
  })

  await trial.check('all at once, every event comes back, each order in order', async () => {
    same(await redrive(admin, 'all'), 3, 'redriven')
    const summary = await settled(stage)
    same((await deadEvents(admin)).length, 0, 'the dead events left')
    same(await redrive(admin, 'all'), 0, 'redriven a second time')
    return summary
  })
}

async function interfaces({ trial, server, api }: Stage): Promise<void> {
  const admin = trial.client(server.adminPort)
  const json = { 'content-type': 'application/json' }
  for (const [what, body] of Object.entries(REFUSED)) {
    await trial.check(`/outbox/redrive refuses ${what}`, async () => {
      problem(
        await admin.send('POST', '/outbox/redrive', json, body),
        400,
        'malformed-json',
        'validation-failed',
      )
    })
  }

  await trial.check('/outbox/redrive and /outbox/dead take their methods and JSON only', async () => {
    problem(await admin.get('/outbox/redrive'), 405, 'method-not-allowed')
    problem(await admin.send('POST', '/outbox/dead', json, '{}'), 405, 'method-not-allowed')
    const text = { 'content-type': 'text/plain' }
    problem(await admin.send('POST', '/outbox/redrive', text, '{"ids":"all"}'), 415, 'unsupported-media-type')
  })

  await trial.check('neither is there for callers of the API', async () => {
    problem(await api.get('/outbox/dead'), 404, 'not-found')
    problem(await api.send('POST', '/outbox/redrive', json, '{"ids":"all"}'), 404, 'not-found')
  })

  await trial.check('off loopback neither is there without the token', async () => {
    const http = { adminHost: '0.0.0.0', adminToken: 'acceptance-admin-token' }
    const guarded = await trial.server({ config: { http } })
    const stranger = trial.client(guarded.adminPort)
    problem(await stranger.get('/outbox/dead'), 401, 'unauthenticated')
    problem(await stranger.send('POST', '/outbox/redrive', json, '{"ids":"all"}'), 401, 'unauthenticated')
    const operator = trial.client(guarded.adminPort, http.adminToken)
    same(jsonOf(await operator.get('/outbox/dead')).next, null, 'the next page of none')
    same(await redrive(operator, 'all'), 0, 'redriven')
  })
}

/** What came of one order, whether it was taken or not. */
function arrivals({ consumer }: Stage, subject: string): string {
  return consumer.arrivals
    .map(({ event }): CloudEvent => event)
    .filter(event => event.subject === subject)
    .map(({ type }) => type)
    .join()
}

/** As `settled`, but for what is parked, of which nothing may have been taken. */
async function settledBut(stage: Stage): Promise<void> {
  const owed = new Map(stage.owed)
  const parked = (await deadEvents(stage.admin)).map(({ subject }) => subject)
  for (const id of parked) stage.owed.set(id, [])
  try {
    await settled(stage)
  } finally {
    for (const id of parked) stage.owed.set(id, owed.get(id) ?? [])
  }
}

/** The dead events of one order once there are so many. */
function deadOf(admin: Client, subject: string, count: number): Promise<readonly Dead[]> {
  return until(`${count} dead events of ${subject}`, async () => {
    const dead = (await deadEvents(admin)).filter(event => event.subject === subject)
    return dead.length === count && dead
  })
}

async function deadEvents(admin: Client, query = ''): Promise<readonly Dead[]> {
  const answer = await admin.get(`/outbox/dead${query}`)
  status(answer, 200)
  same(answer.headers['cache-control'], 'no-store', 'Cache-Control')
  const { events } = jsonOf(answer)
  demand(Array.isArray(events), `a list of events, saw ${answer.body}`)
  return events
}

async function redrive(admin: Client, ids: readonly string[] | 'all'): Promise<unknown> {
  const headers = { 'content-type': 'application/json' }
  const answer = await admin.send('POST', '/outbox/redrive', headers, JSON.stringify({ ids }))
  status(answer, 200)
  return jsonOf(answer).redriven
}
