import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors/index.ts'
import { type HttpChannels, httpChannels, type RequestEnded } from '../../src/http/channels.ts'
import type { Turn } from '../../src/http/connection.ts'
import { attachExchange, Exchange, exchangeOf } from '../../src/http/exchange.ts'
import { leaseChannels, type Stage } from '../../src/lease/index.ts'
import { traceFrom } from '../../src/runtime/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const BUDGET_MS = 200

/** Takes down what is written; `close` comes when the test says so. */
class FakeResponse extends EventEmitter {
  readonly answers: { status: number; headers: readonly string[]; body: string }[] = []
}

function exchanging({ chargedMs = 0, peerClosed = false } = {}) {
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
  let releases = 0
  const exchange = new Exchange(
    { clock, leaseChannels: lease, httpChannels: channels },
    {
      turn: { req: { method: 'POST' }, res } as unknown as Turn,
      connection: {
        peerClosed,
        answer: (status, headers, body) => res.answers.push({ status, headers, body }),
      },
      head: { principal: undefined, idempotencyKey: undefined },
      permit: { release: () => releases++ },
      trace: traceFrom(undefined),
      route: '/v1/orders',
      budgetMs: BUDGET_MS,
      chargedMs,
    },
  )
  return { clock, res, exchange, ended, faults, late, released: () => releases > 0 }
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
  test('writes once, gives its permit back with the answer or the end, and ends once, whatever comes in whatever order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), steps => {
        const { clock, res, exchange, ended, faults, released } = exchanging()
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
          expect(res.answers.map(({ status }) => status)).toEqual(expected === undefined ? [] : [expected])
          expect(released()).toBe(closed || expected !== undefined)
          expect(ended.map(({ status }) => status)).toEqual(closed ? [expected ?? 499] : [])
        }
        expect(ended[0]?.outcome).toBe(
          { 200: 'success', 400: 'client_error', 500: 'uncontrolled', 504: 'rejected' }[expected ?? 0] ??
            'client_abort',
        )
        expect(faults.length).toBe(steps.filter(step => step.do === 'fault').length)
        expect(clock.pendingTimers).toBe(0)
        expect(res.answers.map(({ body }) => body).join('')).not.toMatch(/SELECT|secrets/)
        if (expected === 504) {
          expect(JSON.parse(res.answers[0]?.body ?? '')).toMatchObject({
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
    expect(res.answers).toEqual([])
    // Timers may fire early, so the lease sets its own a little behind the moment.
    clock.advance(4)
    expect(res.answers[0]?.status).toBe(504)
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
    expect(res.answers).toEqual([])
    exchange.answer(201, [], '{}')
    expect(res.answers[0]?.status).toBe(201)
  })

  test('says unknown when the verdict stays away, in the words of the verdict', () => {
    const { clock, res, exchange } = exchanging()
    enter(exchange, 'commit', 0)
    clock.advance(BUDGET_MS + 25)
    exchange.refuse(new Problem('budget-exhausted', { stage: 'commit', committed: 'unknown' }))
    expect(JSON.parse(res.answers[0]?.body ?? '')).toMatchObject({ committed: 'unknown' })
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
    expect(res.answers).toEqual([])
    expect(late).toEqual(['answer'])
    expect(ended).toMatchObject([{ status: 499, outcome: 'client_abort', durationMs: 30, code: undefined }])
  })

  test('answers 504 to a client that has closed its side, and counts it as 499', () => {
    const { clock, res, exchange, ended } = exchanging({ peerClosed: true })
    enter(exchange, 'pricing', 0)
    clock.advance(BUDGET_MS + 4)
    expect(res.answers[0]?.status).toBe(504)
    res.emit('close')
    expect(ended).toMatchObject([{ status: 499, outcome: 'client_abort' }])
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
    expect(JSON.parse(res.answers[0]?.body ?? '')).toMatchObject({ status: 500, code: 'internal' })
    expect(res.answers[0]?.body).not.toMatch(/SQLITE|\/var/)
  })

  test('is found again behind Express, and only by the request it was tied to', () => {
    const { exchange } = exchanging()
    const req = {} as IncomingMessage
    attachExchange(req, exchange)
    expect(exchangeOf(req)).toBe(exchange)
    expect(() => exchangeOf({} as IncomingMessage)).toThrow(TypeError)
  })
})
