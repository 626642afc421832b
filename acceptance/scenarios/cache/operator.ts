import { type Bench, WIDE_BUDGETS } from '../../support/bench.ts'
import {
  created,
  demand,
  matches,
  orderOf,
  pageOf,
  pointers,
  problem,
  same,
  status,
} from '../../support/expect.ts'
import { freshCustomer, freshKey, sampleOrder } from '../../support/samples.ts'
import { watched } from './activity.ts'
import { invalidate, postTags } from './invalidate.ts'

const TOKEN = 'acceptance-admin-token'

const ACCEPTED: Record<string, [body: string, invalidated: number]> = {
  'one tag': ['{"tags":["order:1"]}', 1],
  'three tags': ['{"tags":["order:1","customer:one:c","price:EUR:s"]}', 3],
  'a tag that nothing carries': ['{"tags":["nothing"]}', 1],
  'a tag called __proto__': ['{"tags":["__proto__"]}', 1],
  'a tag of 512 characters': [JSON.stringify({ tags: ['t'.repeat(512)] }), 1],
  'a thousand tags': [
    JSON.stringify({ tags: Array.from({ length: 1_000 }, (_, index) => `t${index}`) }),
    1_000,
  ],
}

const REFUSED: Record<string, [body: string, code: string, pointer?: string]> = {
  'no body': ['', 'malformed-json'],
  'no JSON': ['{"tags":', 'malformed-json'],
  'tags twice': ['{"tags":["a"],"tags":["b"]}', 'malformed-json'],
  'an empty object': ['{}', 'validation-failed', '/tags'],
  null: ['null', 'validation-failed', ''],
  'a list': ['["order:1"]', 'validation-failed', ''],
  'no tags': ['{"tags":[]}', 'validation-failed', '/tags'],
  'a tag for tags': ['{"tags":"order:1"}', 'validation-failed', '/tags'],
  'a number for a tag': ['{"tags":["a",1]}', 'validation-failed', '/tags/1'],
  'an empty tag': ['{"tags":[""]}', 'validation-failed', '/tags/0'],
  'a tag of 513 characters': [JSON.stringify({ tags: ['t'.repeat(513)] }), 'validation-failed', '/tags/0'],
  'a thousand tags and one': [JSON.stringify({ tags: Array(1_001).fill('t') }), 'validation-failed', '/tags'],
  'an unknown member': ['{"tags":["a"],"all":true}', 'validation-failed', '/all'],
}

/** POST /cache/invalidate: what an operator may put out of date, and who that is. */
export async function operator(bench: Bench): Promise<void> {
  const { trial, server } = bench
  const admin = trial.client(server.adminPort)
  await effects(bench)

  for (const [what, [body, invalidated]] of Object.entries(ACCEPTED)) {
    await trial.check(`/cache/invalidate takes ${what}`, async () => {
      const answer = await postTags(admin, body)
      status(answer, 200)
      same(answer.body, JSON.stringify({ invalidated }), 'the body')
      matches(answer.headers['content-type'], /^application\/json/, 'Content-Type')
      same(answer.headers['cache-control'], 'no-store', 'Cache-Control')
    })
  }
  for (const [what, [body, code, pointer]] of Object.entries(REFUSED)) {
    await trial.check(`/cache/invalidate refuses ${what}`, async () => {
      const answer = await postTags(admin, body)
      problem(answer, 400, code)
      if (pointer !== undefined) {
        const named = pointers(answer)
        demand(named.includes(pointer), `the pointer "${pointer}", saw ${named.slice(0, 5)}`)
      }
    })
  }

  for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS']) {
    await trial.check(`${method} /cache/invalidate is not allowed`, async () => {
      const answer = await admin.send(method, '/cache/invalidate')
      problem(answer, 405, 'method-not-allowed')
      same(answer.headers.allow, 'POST', 'Allow')
    })
  }

  await trial.check('/cache/invalidate takes JSON only, as no form of a browser posts it', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', ''])
      problem(await postTags(admin, '{"tags":["a"]}', type), 415, 'unsupported-media-type')
  })

  await trial.check('/cache/invalidate refuses a body that is too large', async () => {
    problem(await postTags(admin, `{"tags":["${'t'.repeat(2 * 1024 * 1024)}"]}`), 413, 'payload-too-large')
  })

  await trial.check('/cache/invalidate is not there for callers of the API', async () => {
    const json = { 'content-type': 'application/json' }
    problem(await bench.api.send('POST', '/cache/invalidate', json, '{"tags":["a"]}'), 404, 'not-found')
  })

  await offLoopback(bench)
}

/** Each tag of the contract reaches what carries it, and nothing else. */
async function effects({ trial, api, as, admin }: Bench): Promise<void> {
  const [key, customerId] = [freshKey(), freshCustomer()]
  const { id } = created(await api.order(key, sampleOrder({ customerId })))
  const reads = async () => {
    for (const client of [api, as.masked]) {
      orderOf(await client.get(`/v1/orders/${id}`))
      for (const limit of ['5', '10'])
        same(pageOf(await client.list({ customerId, limit })).orders.length, 1, 'the orders')
    }
  }
  await reads()
  const tags: Record<string, [tag: string, loads: number]> = {
    'of an order reaches the order in both views': [`order:${id}`, 2],
    'of a customer reaches every page in both views': [`customer:one:${customerId}`, 4],
    "of another tenant's customer reaches nothing": [`customer:two:${customerId}`, 0],
    'that nothing carries reaches nothing': ['nothing', 0],
  }
  for (const [what, [tag, loads]] of Object.entries(tags)) {
    await trial.check(`the tag ${what}`, async () => {
      const [, none] = await watched(admin, reads)
      same(none.loads, 0, 'the loads before')
      const [, activity] = await watched(admin, async () => {
        await invalidate(admin, tag)
        await reads()
      })
      same(activity.loads, loads, 'the loads')
      same(activity.invalidations, 1, 'the invalidations')
      return `${activity.loads} loads, ${activity.hits} hits`
    })
  }
}

async function offLoopback({ trial }: Bench): Promise<void> {
  const http = { adminHost: '0.0.0.0', adminToken: TOKEN }
  const server = await trial.server({ config: { ...WIDE_BUDGETS, http } })
  const body = '{"tags":["a"]}'
  const credentials: Record<string, string | undefined> = {
    'no token': undefined,
    'another token': 'Bearer another-admin-token',
    'the beginning of the token': `Bearer ${TOKEN.slice(0, -1)}`,
    'the token without its scheme': TOKEN,
  }
  const admin = trial.client(server.adminPort)
  for (const [what, authorization] of Object.entries(credentials)) {
    await trial.check(`off loopback ${what} puts nothing out of date`, async () => {
      const headers = {
        'content-type': 'application/json',
        ...(authorization !== undefined && { authorization }),
      }
      const answer = await admin.send('POST', '/cache/invalidate', headers, body)
      problem(answer, 401, 'unauthenticated')
      matches(answer.headers['www-authenticate'], /^Bearer\b/, 'WWW-Authenticate')
      problem(await admin.get('/config', headers), 401, 'unauthenticated')
    })
  }

  await trial.check('off loopback the token puts out of date, and the metrics need none', async () => {
    const operator = trial.client(server.adminPort, TOKEN)
    const answer = await postTags(operator, body)
    status(answer, 200)
    same(answer.body, '{"invalidated":1}', 'the body')
    status(await operator.get('/config'), 200)
    status(await admin.get('/metrics'), 200)
    demand(!server.lines.join('\n').includes(TOKEN), 'no token in the log')
  })
}
