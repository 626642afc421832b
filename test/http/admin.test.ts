import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Problem } from '../../src/errors/index.ts'
import { createAdminServer } from '../../src/http/index.ts'

const ID = '019b2d6e-0000-7000-8000-000000000001'
const TOKEN = '0123456789abcdef'

/** The admin listener on loopback, over dead events of which `dead` are there. */
async function admin({
  token,
  dead = 0,
  away = false,
}: {
  token?: string
  dead?: number
  away?: boolean
} = {}) {
  const asked: unknown[] = []
  const faults: unknown[] = []
  const unlessAway = <Value>(value: Value) => {
    if (away) throw new Problem('store-unavailable')
    return value
  }
  const server = createAdminServer({
    adminToken: token,
    metrics: async () => ({ contentType: 'text/plain', text: 'a_metric 1\n' }),
    config: { a: 1 },
    invalidate: tags => asked.push({ tags }),
    deadEvents: {
      list: async page => {
        asked.push(page)
        const events = Array.from({ length: dead }, (_, index) => ({ sequence: index + 1, id: ID }))
        return unlessAway(events.filter(({ sequence }) => sequence > page.after).slice(0, page.limit))
      },
      redrive: async ids => {
        asked.push(ids)
        return unlessAway(ids === 'all' ? dead : ids.length)
      },
    },
    onFault: error => faults.push(error),
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const get = (path: string, init: RequestInit = {}) => fetch(`${base}${path}`, init)
  const redrive = (body: string, headers: Record<string, string> = {}) =>
    get('/outbox/redrive', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    })
  return { get, redrive, asked, faults }
}

describe('dead events', () => {
  test('are listed, and say where the next page begins', async () => {
    const { get } = await admin({ dead: 3 })
    const first = await get('/outbox/dead?limit=2')
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect(await first.json()).toEqual({
      events: [
        { sequence: 1, id: ID },
        { sequence: 2, id: ID },
      ],
      next: 2,
    })
    expect(await (await get('/outbox/dead?limit=2&after=2')).json()).toMatchObject({ next: 3 })
    expect(await (await get('/outbox/dead?after=3')).json()).toEqual({ events: [], next: null })
  })

  test.each([
    ['', { limit: 100, after: 0 }],
    ['?limit=1000&after=7', { limit: 1_000, after: 7 }],
    ['?limit=1001', { limit: 1_000, after: 0 }],
    ['?limit=0', { limit: 1, after: 0 }],
    ['?limit=-1&after=-1', { limit: 100, after: 0 }],
    ['?limit=x&after=1e3', { limit: 100, after: 0 }],
    ['?after=99999999999999999999', { limit: 100, after: 0 }],
    ['?other=1', { limit: 100, after: 0 }],
  ])('%j asks for a page within bounds', async (query, page) => {
    const { get, asked } = await admin()
    expect((await get(`/outbox/dead${query}`)).status).toBe(200)
    expect(asked).toEqual([page])
  })

  test('HEAD follows GET', async () => {
    const { get } = await admin({ dead: 1 })
    const answer = await get('/outbox/dead', { method: 'HEAD' })
    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe('')
  })
})

describe('a redrive', () => {
  test.each([
    ['of some', { ids: [ID] }, 1],
    ['of all', { ids: 'all' }, 3],
  ])('%s says how many are due again', async (_, body, count) => {
    const { redrive, asked } = await admin({ dead: 3 })
    const answer = await redrive(JSON.stringify(body))
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({ redriven: count })
    expect(asked).toEqual([body.ids])
  })

  test.each([
    ['{', 'malformed-json'],
    ['', 'malformed-json'],
    ['{}', 'validation-failed'],
    ['[]', 'validation-failed'],
    ['null', 'validation-failed'],
    ['{"ids":"some"}', 'validation-failed'],
    ['{"ids":[]}', 'validation-failed'],
    ['{"ids":["all"]}', 'validation-failed'],
    ['{"ids":[1]}', 'validation-failed'],
    [`{"ids":["${ID}"],"more":1}`, 'validation-failed'],
    [JSON.stringify({ ids: Array(1_001).fill(ID) }), 'validation-failed'],
  ])('of a wrong body (%#) is refused, and nothing happens', async (body, code) => {
    const { redrive, asked } = await admin()
    const answer = await redrive(body)
    expect(answer.status).toBe(400)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(await answer.json()).toMatchObject({ code })
    expect(asked).toEqual([])
  })

  test('of more than a megabyte is refused', async () => {
    const { redrive, asked } = await admin()
    expect((await redrive(`{"ids":"${'x'.repeat(1_048_577)}"}`)).status).toBe(413)
    expect(asked).toEqual([])
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
    'as %s, which any page may post, is refused',
    async type => {
      const { redrive, asked } = await admin()
      expect((await redrive('{"ids":"all"}', { 'content-type': type })).status).toBe(415)
      expect(asked).toEqual([])
    },
  )
})

test.each([
  ['POST', '/outbox/dead', 'GET, HEAD'],
  ['DELETE', '/outbox/dead', 'GET, HEAD'],
  ['GET', '/outbox/redrive', 'POST'],
  ['PUT', '/outbox/redrive', 'POST'],
])('%s %s is no way, and the answer says which are', async (method, path, allowed) => {
  const { get, asked } = await admin()
  const answer = await get(path, { method })
  expect(answer.status).toBe(405)
  expect(answer.headers.get('allow')).toBe(allowed)
  expect(asked).toEqual([])
})

test('a store that is away is 503 on both, and no fault', async () => {
  const { get, redrive, faults } = await admin({ away: true })
  for (const answer of [await get('/outbox/dead'), await redrive('{"ids":"all"}')]) {
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(await answer.json()).toMatchObject({ code: 'store-unavailable' })
  }
  expect(faults).toEqual([])
})

describe('with a token', () => {
  test.each([undefined, 'Bearer wrong', `bearer ${TOKEN}`, `Basic ${TOKEN}`, TOKEN, `Bearer ${TOKEN}x`])(
    '%j may neither list nor redrive',
    async authorization => {
      const { get, redrive, asked } = await admin({ token: TOKEN })
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
      for (const answer of [
        await get('/outbox/dead', { headers }),
        await redrive('{"ids":"all"}', headers),
      ]) {
        expect(answer.status).toBe(401)
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /)
      }
      expect(asked).toEqual([])
    },
  )

  test('whoever has it may, and metrics need none', async () => {
    const { get, redrive } = await admin({ token: TOKEN })
    const headers = { authorization: `Bearer ${TOKEN}` }
    expect((await get('/outbox/dead', { headers })).status).toBe(200)
    expect((await redrive('{"ids":"all"}', headers)).status).toBe(200)
    expect((await get('/metrics')).status).toBe(200)
  })
})
