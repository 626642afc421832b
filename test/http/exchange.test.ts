import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors/index.ts'
import { type HttpChannels, httpChannels, type RequestEnded } from '../../src/http/channels.ts'
import { attachExchange, Exchange, exchangeOf } from '../../src/http/exchange.ts'
import { writeResponse } from '../../src/http/response.ts'
import { leaseChannels, type Stage } from '../../src/lease/index.ts'
import { traceFrom } from '../../src/runtime/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const BUDGET_MS = 200
const RESPONSE_TIMEOUT_MS = 5_000

/** Takes down what is written to it; `close` comes when the test says so. */
class FakeResponse extends EventEmitter {
  readonly heads: { status: number; headers: string[] }[] = []
  readonly bodies: (string | undefined)[] = []
  /** What the kernel has not taken yet; without a socket the answer waits for those before it. */
  socket: { writableLength: number } | null = { writableLength: 0 }

  writeHead(status: number, headers: string[]): this {
    this.heads.push({ status, headers })
    return this
  }

  end(body?: string): this {
    this.bodies.push(body)
    return this
  }
}

function exchanging({ chargedMs = 0, draining = false } = {}) {
  const clock = new VirtualClock()
  const channels: HttpChannels = httpChannels()
  const ended: RequestEnded[] = []
  const faults: unknown[] = []
  const late: string[] = []
  channels.ended.subscribe(message => ended.push(message))
  channels.fault.subscribe(({ error }) => faults.push(error))
  const lease = leaseChannels()
  lease.late.subscribe(({ kind }) => late.push(kind))
  const res = new FakeResponse()
  let cuts = 0
  let releases = 0
  const exchange = new Exchange(
    {
      clock,
      leaseChannels: lease,
      httpChannels: channels,
      responseTimeoutMs: RESPONSE_TIMEOUT_MS,
      closes: () => draining,
    },
    {
      req: { method: 'POST', socket: { destroy: () => cuts++ } } as unknown as IncomingMessage,
      res: res as unknown as ServerResponse,
      permit: { release: () => releases++ },
      trace: traceFrom(undefined),
      route: '/v1/orders',
      budgetMs: BUDGET_MS,
      chargedMs,
    },
  )
  return { clock, res, exchange, ended, faults, late, releases: () => releases, cuts: () => cuts }
}

/** What the routes do with a stage that cannot begin: let it be thrown into the error handler. */
function enter(exchange: Exchange, stage: Stage, floorMs: number): void {
  try {
    exchange.lease.enter(stage, floorMs)
  } catch (error) {
    exchange.refuse(error)
  }
}

const step = fc.oneof(
  fc.record({ do: fc.constantFrom('answer' as const, 'problem' as const, 'fault' as const, 'end' as const) }),
  fc.record({ do: fc.constant('close' as const) }),
  fc.record({
    do: fc.constant('enter' as const),
    stage: fc.constantFrom<Stage>('body', 'lookup', 'pricing', 'commit', 'commit', 'read'),
    floorMs: fc.nat({ max: 40 }),
  }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.nat({ max: 150 }) }),
)

describe('an exchange', () => {
  test('writes once, gives its permit back once and ends once, whatever comes in whatever order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), steps => {
        const { clock, res, exchange, ended, faults, releases } = exchanging()
        const { lease } = exchange
        let closed = false
        let expected: number | undefined
        const writes = (status: number) => {
          if (!closed) expected ??= status
        }
        for (const step of [...steps, { do: 'close' as const }, { do: 'answer' as const }]) {
          const stoodBefore = lease.ended === undefined
          if (step.do === 'answer') {
            exchange.answer(200, ['Content-Type', 'application/json'], '{}')
            writes(200)
          }
          if (step.do === 'problem') {
            exchange.refuse(new Problem('unknown-sku'))
            writes(400)
          }
          if (step.do === 'fault') {
            exchange.refuse(new Error('SELECT * FROM secrets'))
            writes(500)
          }
          // The routes pass the lease's end on when what they waited for was stopped by it.
          if (step.do === 'end' && lease.ended) {
            exchange.refuse(lease.ended)
            if (lease.ended.cause === 'expired') writes(504)
          }
          if (step.do === 'enter') {
            enter(exchange, step.stage, step.floorMs)
            if (lease.ended?.cause === 'expired') writes(504)
          }
          if (step.do === 'advance') {
            clock.advance(step.ms)
            // During a commit the verdict answers, not the clock.
            if (stoodBefore && lease.ended && lease.ended.stage !== 'commit') writes(504)
          }
          if (step.do === 'close' && !closed) {
            const stands = lease.state === 'open'
            closed = true
            res.emit('close')
            if (stands) expect(lease.state).toBe(expected === undefined ? 'abandoned' : 'closed')
          }
          expect(res.heads.map(({ status }) => status)).toEqual(expected === undefined ? [] : [expected])
          expect(res.bodies).toHaveLength(res.heads.length)
          expect(releases()).toBe(closed ? 1 : 0)
          expect(ended.map(({ status }) => status)).toEqual(closed ? [expected ?? 499] : [])
        }
        expect(ended[0]?.outcome).toBe(
          { 200: 'success', 400: 'client_error', 500: 'uncontrolled', 504: 'rejected' }[expected ?? 0] ??
            'client_abort',
        )
        expect(faults.length).toBe(steps.filter(step => step.do === 'fault').length)
        expect(clock.pendingTimers).toBe(0)
        expect(res.bodies.join('')).not.toMatch(/SELECT|secrets/)
        if (expected === 504) {
          expect(JSON.parse(res.bodies[0] ?? '')).toMatchObject({
            code: 'budget-exhausted',
            budgetMs: BUDGET_MS,
            stage: lease.ended?.stage,
            committed: 'no',
          })
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test('answers 504 at its moment, with the stage where it stood', () => {
    const { clock, res, exchange, ended } = exchanging()
    enter(exchange, 'pricing', 0)
    clock.advance(BUDGET_MS - 1)
    expect(res.heads).toEqual([])
    // Timers may fire early, so the lease sets its own a little behind the moment.
    clock.advance(4)
    expect(res.heads[0]?.status).toBe(504)
    expect(exchange.lease.signal.aborted).toBe(true)
    res.emit('close')
    expect(ended).toMatchObject([
      { status: 504, code: 'budget-exhausted', stage: 'pricing', outcome: 'rejected' },
    ])
  })

  test('waits for the verdict of a commit that is under way, and answers with the fact', () => {
    const { clock, res, exchange } = exchanging()
    enter(exchange, 'commit', 0)
    clock.advance(BUDGET_MS + 20)
    expect(exchange.lease.state).toBe('expired')
    expect(res.heads).toEqual([])
    exchange.answer(201, [], '{}')
    expect(res.heads[0]?.status).toBe(201)
  })

  test('says unknown when the verdict stays away, in the words of the verdict', () => {
    const { clock, res, exchange } = exchanging()
    enter(exchange, 'commit', 0)
    clock.advance(BUDGET_MS + 25)
    exchange.refuse(new Problem('budget-exhausted', { stage: 'commit', committed: 'unknown' }))
    expect(JSON.parse(res.bodies[0] ?? '')).toMatchObject({ committed: 'unknown' })
  })

  test('writes nothing to a client that is gone, stops its work, and counts it as 499', () => {
    const { clock, res, exchange, ended, late } = exchanging()
    enter(exchange, 'pricing', 0)
    const { signal } = exchange.lease
    clock.advance(30)
    res.emit('close')
    expect(signal.reason).toMatchObject({ cause: 'abandoned' })
    exchange.refuse(signal.reason)
    exchange.answer(201, [], '{}')
    expect(res.heads).toEqual([])
    expect(late).toEqual(['answer'])
    expect(ended).toMatchObject([{ status: 499, outcome: 'client_abort', durationMs: 30, code: undefined }])
  })

  test('counts the time that the request had waited unseen', () => {
    const { clock, res, exchange, ended } = exchanging({ chargedMs: 150 })
    expect(exchange.lease.remainingMs()).toBe(50)
    clock.advance(10)
    exchange.answer(200, [], '{}')
    res.emit('close')
    expect(ended[0]?.durationMs).toBe(160)
  })

  test('reports a fault whole to ourselves and without a word of it to the caller', () => {
    const { res, exchange, faults } = exchanging()
    const fault = new Error('SQLITE_CORRUPT at /var/lib/punctual.db')
    exchange.refuse(fault)
    expect(faults).toEqual([fault])
    expect(JSON.parse(res.bodies[0] ?? '')).toMatchObject({ status: 500, code: 'internal' })
    expect(res.bodies[0]).not.toMatch(/SQLITE|\/var/)
  })

  test('is found again behind Express, and only by the request it was tied to', () => {
    const { exchange } = exchanging()
    const req = {} as IncomingMessage
    attachExchange(req, exchange)
    expect(exchangeOf(req)).toBe(exchange)
    expect(() => exchangeOf({} as IncomingMessage)).toThrow(TypeError)
  })
})

describe('writeResponse', () => {
  const written = (status: number, body: string, closing = false) => {
    const res = new FakeResponse()
    writeResponse(res as unknown as ServerResponse, status, ['ETag', '"v1"'], body, {
      traceId: 'abc',
      closing,
    })
    return { headers: res.heads[0]?.headers, body: res.bodies[0] }
  }

  test('gives the length in bytes, the trace, and the headers asked for', () => {
    expect(written(200, '"é€"')).toEqual({
      headers: ['ETag', '"v1"', 'X-Trace-Id', 'abc', 'Content-Length', '7'],
      body: '"é€"',
    })
  })

  test('gives a 304 neither body nor length', () => {
    expect(written(304, '{}')).toEqual({ headers: ['ETag', '"v1"', 'X-Trace-Id', 'abc'], body: undefined })
  })

  test('asks the client to let go of its connection while draining', () => {
    expect(written(200, '', true).headers).toEqual(expect.arrayContaining(['Connection', 'close']))
    const { res, exchange } = exchanging({ draining: true })
    exchange.answer(200, [], '')
    expect(res.heads[0]?.headers).toEqual(expect.arrayContaining(['Connection', 'close']))
  })
})

describe('an answer that does not leave', () => {
  test.each([
    ['the kernel does not take all of it', { writableLength: 1 }],
    ['answers before it have not left', null],
  ])('is cut after responseTimeoutMs when %s', (_, socket) => {
    const { clock, res, exchange, cuts } = exchanging()
    res.socket = socket
    exchange.answer(200, [], 'body')
    clock.advance(RESPONSE_TIMEOUT_MS - 1)
    expect(cuts()).toBe(0)
    clock.advance(1)
    expect(cuts()).toBe(1)
  })

  test('in one go, or in time, is not cut and leaves no timer', () => {
    for (const socket of [{ writableLength: 0 }, { writableLength: 1 }]) {
      const { clock, res, exchange, cuts } = exchanging()
      res.socket = socket
      exchange.answer(200, [], 'body')
      res.emit('close')
      expect(clock.pendingTimers).toBe(0)
      clock.advance(2 * RESPONSE_TIMEOUT_MS)
      expect(cuts()).toBe(0)
    }
  })
})
