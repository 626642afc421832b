import { beforeEach, describe, expect, test, vi } from 'vitest'
import { outboundChannels, PricingClient } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { VirtualClock } from '../support/virtual-clock.ts'
import { AttemptLedger } from './attempt-ledger.ts'
import { EMPTY_SHELF } from './priced-client.ts'
import { type Exchange, stage } from './staged-transport.ts'

vi.mock('../../src/outbound/transport.ts', () => import('./staged-transport.ts'))

const SAMPLES = 30
const PROBES = 3
const HUNG_UP = new Error('the client hung up')

/** The whole chain, whose breaker judges by 30 samples in a second and closes again by 3. */
function breaking(options: object = {}, breaker: object = {}) {
  const clock = new VirtualClock({ startMs: 1_000_000 })
  const parsed = outboundOptions.parse({
    retryBudgetRatio: 0,
    hedge: { enabled: false },
    ...options,
    breaker: {
      samplingSeconds: 1,
      minimumRps: SAMPLES,
      halfOpenAfterMs: 200,
      halfOpenCalls: PROBES,
      ...breaker,
    },
  })
  const channels = outboundChannels()
  const ledger = new AttemptLedger(channels)
  const client = new PricingClient('http://pricing', parsed, {
    channels,
    clock,
    shelf: EMPTY_SHELF,
  })
  const call = (skus: readonly string[]) => {
    const request = new AbortController()
    const outcome = client
      .fetch({
        currency: 'USD',
        skus,
        neededByMs: clock.nowMs() + 1_000,
        signal: request.signal,
        traceparent: '',
      })
      .then(
        () => 'ok',
        (error: unknown) => (error === HUNG_UP ? 'hung up' : (error as { kind: string }).kind),
      )
    return { request, outcome }
  }
  /** So many callers at once, and their request is on its way. */
  const callers = async (skus: readonly string[]) => {
    const calls = skus.map(sku => call([sku]))
    await clock.advanceAsync(parsed.batch.windowMs)
    return calls
  }
  const outcomesOf = async (calls: readonly { outcome: Promise<string> }[]) => {
    await clock.advanceAsync(0)
    return Promise.all(calls.map(({ outcome }) => outcome))
  }
  /** A request to pricing for one SKU on behalf of so many callers, which ends so. */
  const request = async (callersOfIt: number, end: 'price' | 'reset') => {
    const calls = await callers(Array(callersOfIt).fill('A'))
    const [exchange] = exchanges.splice(0)
    exchange?.[end]()
    return outcomesOf(calls)
  }
  const open = async () => {
    for (let failures = 0; failures < SAMPLES; failures++) await request(1, 'reset')
    expect(client.breakerState).toBe('open')
    clock.advance(200)
  }
  return { clock, client, ledger, call, callers, outcomesOf, request, open }
}

const exchanges: Exchange[] = []
beforeEach(() => {
  exchanges.length = 0
  stage.onSend = exchange => {
    exchange.obey()
    exchanges.push(exchange)
  }
})

describe('of the breaker, one request to pricing is one sample:', () => {
  test('thirty callers of one failed flight do not open it, and thirty failed requests do', async () => {
    const { client, request } = breaking()
    expect(await request(SAMPLES, 'reset')).toEqual(Array(SAMPLES).fill('failed'))
    expect(client.breakerState).toBe('closed')
    // That was one: the thirtieth opens it, and no earlier one.
    for (let failures = 1; failures < SAMPLES; failures++) {
      expect(client.breakerState).toBe('closed')
      await request(1, 'reset')
    }
    expect(client.breakerState).toBe('open')
    expect(await request(1, 'price')).toEqual(['shed'])
  })

  test('thirty callers whose SKUs share one failed batch do not open it either', async () => {
    const { client, callers, outcomesOf } = breaking()
    const calls = await callers(Array.from({ length: SAMPLES }, (_, index) => `SKU-${index}`))
    expect(exchanges).toHaveLength(1)
    exchanges[0]?.reset()
    expect(await outcomesOf(calls)).toEqual(Array(SAMPLES).fill('failed'))
    expect(client.breakerState).toBe('closed')
  })

  test('thirty callers of one good flight do not outvote the failures', async () => {
    const { client, request } = breaking({}, { minimumRps: 2 })
    expect(await request(SAMPLES, 'price')).toEqual(Array(SAMPLES).fill('ok'))
    await request(1, 'reset')
    expect(client.breakerState).toBe('open')
  })

  test('a failure that the retry mended is none, and both attempts failing are one', async () => {
    const retrying = { retryBudgetRatio: 1, retryDelayMs: 0 }
    const { client, clock, callers, outcomesOf } = breaking(retrying, { minimumRps: 2 })
    const requestOf = async (...ends: ('price' | 'reset')[]) => {
      const calls = await callers(['A'])
      for (const end of ends) {
        exchanges.shift()?.[end]()
        await clock.advanceAsync(1)
      }
      return outcomesOf(calls)
    }
    expect(await requestOf('reset', 'reset')).toEqual(['failed'])
    expect(client.breakerState).toBe('closed')
    expect(await requestOf('reset', 'price')).toEqual(['ok'])
    expect(client.breakerState).toBe('closed')
    expect(await requestOf('reset', 'reset')).toEqual(['failed'])
    expect(client.breakerState).toBe('open')
  })

  test('thirty requests that are refused, or that their callers leave, are none', async () => {
    const { client, callers, outcomesOf } = breaking()
    for (let requests = 0; requests < SAMPLES; requests++) {
      const refused = await callers(['A'])
      exchanges.pop()?.refuse()
      expect(await outcomesOf(refused)).toEqual(['refused'])
      const left = await callers(['A', 'A'])
      for (const { request } of left) request.abort(HUNG_UP)
      expect(await outcomesOf(left)).toEqual(['hung up', 'hung up'])
    }
    expect(client.breakerState).toBe('closed')
  })

  test('thirty requests that hang for the whole of their attempts open it', async () => {
    const { client, clock, callers, outcomesOf } = breaking(
      { retryMaxAttempts: 0 },
      { samplingSeconds: 10, minimumRps: 3 },
    )
    for (let requests = 0; requests < SAMPLES; requests++) {
      expect(client.breakerState).toBe('closed')
      const calls = await callers(['A'])
      await clock.advanceAsync(40)
      expect(await outcomesOf(calls)).toEqual(['timeout'])
    }
    expect(client.breakerState).toBe('open')
  })

  test('thirty requests that hang until the limit of their calls open it', async () => {
    const options = { retryMaxAttempts: 0, leaseMs: 100, totalMs: 41, attemptMs: 40 }
    const { client, clock, ledger, callers, outcomesOf } = breaking(options, {
      samplingSeconds: 10,
      minimumRps: 3,
    })
    for (let requests = 0; requests < SAMPLES; requests++) {
      const calls = await callers(['A'])
      await clock.advanceAsync(41)
      expect(await outcomesOf(calls)).toEqual(['timeout'])
    }
    expect(client.breakerState).toBe('open')
    expect(ledger.results).toMatchObject({ expired: SAMPLES, cancelled: 0 })
  })

  test.each(['reset', 'refuse'] as const)(
    'a request that its last caller leaves, since another one of his ended with a %s, is none',
    async end => {
      const { client, clock, ledger, call, outcomesOf } = breaking(
        { batch: { maxSize: 1 } },
        { minimumRps: 2 },
      )
      const order = call(['A', 'B'])
      await clock.advanceAsync(0)
      expect(exchanges.map(({ skus }) => skus)).toEqual([['A'], ['B']])
      exchanges[0]?.[end]()
      expect(await outcomesOf([order])).toEqual([end === 'reset' ? 'failed' : 'refused'])
      expect(exchanges[1]?.signal.aborted).toBe(true)
      expect(client.breakerState).toBe('closed')
      expect(ledger.results).toMatchObject({ failed: 1, cancelled: 1, expired: 0 })
    },
  )

  // Fault: Waiter.end hands the failure of one flight to all the others that it leaves, and Flight.leave takes any
  // `timeout` for the end of the call. An attempt of A that expires thus counts B's request, which is only half as old,
  // as failed, and its attempt as `expired`. Mend in Waiter: only #onAbort's and the timer's end is the call's own; a
  // flight's failure leaves the others without a reason.
  test('a younger request that its last caller leaves, since another one of his ran out of time, is none', async () => {
    const { client, clock, ledger, call, outcomesOf } = breaking(
      { batch: { maxSize: 1 }, retryMaxAttempts: 0 },
      { minimumRps: 2 },
    )
    const older = call(['A'])
    await clock.advanceAsync(20)
    const order = call(['A', 'B'])
    await clock.advanceAsync(20)
    expect(await outcomesOf([older, order])).toEqual(['timeout', 'timeout'])
    expect(exchanges.map(({ skus, signal }) => [...skus, signal.aborted])).toEqual([
      ['A', true],
      ['B', true],
    ])
    expect(client.breakerState).toBe('closed')
    expect(ledger.results).toMatchObject({ expired: 1, cancelled: 1 })
  })
})

describe('the half-open breaker, whose probes join one flight,', () => {
  test('admits exactly halfOpenCalls callers, sheds the others at once, and counts one success', async () => {
    const { client, open, callers, outcomesOf } = breaking()
    await open()
    // Each round one request succeeds, so that one place less is left.
    for (const places of [3, 2, 1]) {
      const calls = await callers(Array(10).fill('A'))
      expect(exchanges).toHaveLength(1)
      expect(await outcomesOf(calls.slice(places))).toEqual(Array(10 - places).fill('shed'))
      expect(client.breakerState).toBe('half-open')
      exchanges.pop()?.price()
      expect(await outcomesOf(calls.slice(0, places))).toEqual(Array(places).fill('ok'))
    }
    expect(client.breakerState).toBe('closed')
  })

  test('counts probes that share one batch as one success', async () => {
    const { client, open, callers, outcomesOf } = breaking()
    await open()
    const calls = await callers(['A', 'B', 'C', 'D'])
    expect(exchanges.map(({ skus }) => skus)).toEqual([['A', 'B', 'C']])
    exchanges.pop()?.price()
    expect(await outcomesOf(calls)).toEqual(['ok', 'ok', 'ok', 'shed'])
    expect(client.breakerState).toBe('half-open')
  })

  test('opens again at one failure, which all of its probes hear', async () => {
    const { client, clock, open, request } = breaking()
    await open()
    expect(await request(5, 'reset')).toEqual(['failed', 'failed', 'failed', 'shed', 'shed'])
    expect(client.breakerState).toBe('open')
    clock.advance(190)
    expect(await request(1, 'price')).toEqual(['shed'])
  })

  test('gives the place of a probe that hangs up to the next, who joins the same flight', async () => {
    const { client, open, callers, outcomesOf } = breaking()
    await open()
    const probes = await callers(['A', 'A', 'A'])
    probes[0]?.request.abort(HUNG_UP)
    expect(await outcomesOf(probes.slice(0, 1))).toEqual(['hung up'])
    const more = await callers(['A', 'A'])
    expect(await outcomesOf(more.slice(1))).toEqual(['shed'])
    expect(exchanges).toHaveLength(1)
    exchanges.pop()?.price()
    expect(await outcomesOf([...probes.slice(1), ...more.slice(0, 1)])).toEqual(['ok', 'ok', 'ok'])
    expect(client.breakerState).toBe('half-open')
  })

  test('with all its places taken and left, is neither closed nor stuck', async () => {
    const { client, open, callers, outcomesOf } = breaking()
    await open()
    for (let rounds = 0; rounds < 5; rounds++) {
      const calls = await callers(['A', 'A', 'A', 'A'])
      for (const { request } of calls) request.abort(HUNG_UP)
      expect(await outcomesOf(calls)).toEqual(['hung up', 'hung up', 'hung up', 'shed'])
      expect(client.breakerState).toBe('half-open')
    }
  })
})
