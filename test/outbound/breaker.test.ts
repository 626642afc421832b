import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Breaker, type BreakerState } from '../../src/outbound/breaker.ts'
import { OutboundFailure, type PriceCall, type PriceList } from '../../src/outbound/call.ts'
import { Channel } from '../../src/runtime/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const SAMPLING_MS = 1_000
const BUCKET_MS = SAMPLING_MS / 10
const HANG_UP = new Error('the client hung up')
const LIST: PriceList = { prices: new Map(), unknown: [], bad: [], source: 'live' }
const CALL: PriceCall = {
  currency: 'USD',
  skus: ['SKU-1'],
  endsAtMs: Number.POSITIVE_INFINITY,
  endedBy: 'lease',
  signal: new AbortController().signal,
  traceparent: '',
}

type End = 'ok' | 'failed' | 'timeout' | 'refused' | 'budget' | 'shed' | 'hang-up'
const ends = fc.oneof(
  { weight: 3, arbitrary: fc.constant<End>('ok') },
  { weight: 5, arbitrary: fc.constantFrom<End>('failed', 'timeout') },
  { weight: 2, arbitrary: fc.constantFrom<End>('refused', 'budget', 'shed', 'hang-up') },
)
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('call' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(), how: ends }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat({ max: 400 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('wall' as const), ms: fc.integer({ min: -1e12, max: 1e12 }) }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

interface Options {
  readonly halfOpenAfterMs: number
  readonly halfOpenCalls: number
  readonly failureRatio: number
  readonly minimumRps: number
}

interface Running {
  /** The state, by its number, that the call entered under. */
  readonly epoch: number
  readonly exchange: PromiseWithResolvers<PriceList>
  readonly outcome: Promise<unknown>
}

/** A breaker beside a model that knows only its promises. */
class Modelled {
  readonly clock = new VirtualClock({ startMs: 1_000_000 })
  readonly breaker: Breaker
  readonly options: Options
  readonly running: Running[] = []
  readonly published: BreakerState[] = []
  readonly became: BreakerState[] = []
  state: BreakerState = 'closed'
  epoch = 0
  sinceMs = 0
  probes = { inFlight: 0, succeeded: 0 }
  counted: { bucket: number; good: boolean }[] = []

  constructor(options: Options) {
    this.options = options
    const channel = new Channel<{ state: BreakerState }>()
    channel.subscribe(({ state }) => this.published.push(state))
    this.breaker = new Breaker({ ...options, samplingSeconds: SAMPLING_MS / 1000 }, channel, this.clock)
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'advance') this.clock.advance(step.ms)
    if (step.do === 'wall') this.clock.setWallMs(this.clock.wallMs() + step.ms)
    if (step.do === 'call') await this.call()
    if (step.do === 'end' && this.running.length > 0) await this.end(step.which, step.how)
    expect(this.breaker.state).toBe(this.state)
    expect(this.published).toEqual(this.became)
  }

  async call(): Promise<void> {
    const exchange = Promise.withResolvers<PriceList>()
    let launched = false
    const fetch = this.breaker.gate(
      this.breaker.judge(() => {
        launched = true
        return exchange.promise
      }),
    )
    const outcome = fetch(CALL).catch((error: unknown) => error)
    const admitted = this.admits()
    // Shed or launched, it is decided at once: nobody waits for the probes of others.
    expect(launched).toBe(admitted)
    if (admitted) this.running.push({ epoch: this.epoch, exchange, outcome })
    else expect(await outcome).toMatchObject({ kind: 'shed' })
  }

  admits(): boolean {
    if (this.state === 'open' && this.clock.nowMs() - this.sinceMs >= this.options.halfOpenAfterMs) {
      this.become('half-open')
    }
    if (this.state === 'closed') return true
    if (this.state === 'open') return false
    if (this.probes.inFlight + this.probes.succeeded >= this.options.halfOpenCalls) return false
    this.probes.inFlight++
    return true
  }

  async end(which: number, how: End): Promise<void> {
    const [ended] = this.running.splice(which % this.running.length, 1)
    const error = how === 'hang-up' ? HANG_UP : how === 'ok' ? undefined : new OutboundFailure(how)
    if (error === undefined) ended?.exchange.resolve(LIST)
    else ended?.exchange.reject(error)
    expect(await ended?.outcome).toBe(error ?? LIST)
    if (ended?.epoch === this.epoch) this.judge(how)
  }

  judge(how: End): void {
    const bad = how === 'failed' || how === 'timeout'
    if (this.state === 'half-open') {
      this.probes.inFlight--
      if (bad) this.become('open')
      if (how === 'ok' && ++this.probes.succeeded === this.options.halfOpenCalls) {
        this.counted = []
        this.become('closed')
      }
      return
    }
    if (!bad && how !== 'ok') return
    const bucket = Math.floor(this.clock.nowMs() / BUCKET_MS)
    this.counted.push({ bucket, good: !bad })
    const recent = this.counted.filter(call => call.bucket > bucket - 10)
    const failures = recent.filter(call => !call.good).length
    const enough = recent.length >= this.options.minimumRps * (SAMPLING_MS / 1000)
    if (bad && enough && failures / recent.length >= this.options.failureRatio) this.become('open')
  }

  become(state: BreakerState): void {
    this.state = state
    this.became.push(state)
    this.epoch++
    this.sinceMs = this.clock.nowMs()
    this.probes = { inFlight: 0, succeeded: 0 }
  }
}

describe('the breaker', () => {
  test('keeps to its states, whatever ends how and when', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          halfOpenAfterMs: fc.integer({ min: 10, max: 500 }),
          halfOpenCalls: fc.integer({ min: 1, max: 3 }),
          failureRatio: fc.constantFrom(0.25, 0.5, 0.75),
          minimumRps: fc.constantFrom(1, 2, 4),
        }),
        // Half of the runs begin with a breaker about to probe, which random steps alone seldom reach.
        fc.boolean(),
        fc.array(step, { maxLength: 80 }),
        async (options, opened, steps) => {
          const modelled = new Modelled(options)
          const failure: Step[] = [{ do: 'call' }, { do: 'end', which: 0, how: 'failed' }]
          const toOpen = Array.from({ length: options.minimumRps }, () => failure).flat()
          const toProbe: Step = { do: 'advance', ms: options.halfOpenAfterMs }
          for (const step of opened ? [...toOpen, toProbe, ...steps] : steps) await modelled.take(step)
        },
      ),
      { numRuns: 500 },
    )
  })

  /** A breaker that has just opened. */
  async function opened(options: Partial<Options> = {}): Promise<Modelled> {
    const modelled = new Modelled({
      halfOpenAfterMs: 1_000,
      halfOpenCalls: 3,
      failureRatio: 0.5,
      minimumRps: 2,
      ...options,
    })
    for (let calls = 0; calls < 2; calls++) {
      await modelled.call()
      await modelled.end(0, 'failed')
    }
    expect(modelled.breaker.state).toBe('open')
    return modelled
  }

  async function callTimes(modelled: Modelled, times: number): Promise<number> {
    const before = modelled.running.length
    for (let calls = 0; calls < times; calls++) await modelled.call()
    return modelled.running.length - before
  }

  test('half-open admits exactly halfOpenCalls and sheds the rest at once', async () => {
    const modelled = await opened()
    modelled.clock.advance(999)
    expect(await callTimes(modelled, 10)).toBe(0)
    modelled.clock.advance(1)
    expect(await callTimes(modelled, 100)).toBe(3)
    expect(modelled.breaker.state).toBe('half-open')
  })

  test.each<End>(['hang-up', 'budget', 'shed', 'refused'])(
    'a probe that ends with %s says nothing about pricing and gives its place back',
    async how => {
      const modelled = await opened({ halfOpenCalls: 1 })
      modelled.clock.advance(1_000)
      for (let probes = 0; probes < 5; probes++) {
        expect(await callTimes(modelled, 3)).toBe(1)
        await modelled.end(0, how)
        expect(modelled.breaker.state).toBe('half-open')
      }
      await modelled.call()
      await modelled.end(0, 'ok')
      expect(modelled.breaker.state).toBe('closed')
    },
  )

  test('closed by its probes, begins to count anew', async () => {
    const modelled = await opened({ halfOpenCalls: 1, halfOpenAfterMs: 100 })
    modelled.clock.advance(100)
    await modelled.call()
    await modelled.end(0, 'ok')
    await modelled.call()
    await modelled.end(0, 'failed')
    expect(modelled.breaker.state).toBe('closed')
  })

  test('a call that began while it was closed cannot close or open it later', async () => {
    const stale = new Modelled({ halfOpenAfterMs: 1_000, halfOpenCalls: 1, failureRatio: 0.5, minimumRps: 2 })
    expect(await callTimes(stale, 4)).toBe(4)
    await stale.end(0, 'failed')
    await stale.end(0, 'failed')
    stale.clock.advance(1_000)
    expect(await callTimes(stale, 1)).toBe(1)
    await stale.end(0, 'ok')
    await stale.end(0, 'failed')
    expect(stale.breaker.state).toBe('half-open')
    expect(await callTimes(stale, 1)).toBe(0)
    await stale.end(0, 'ok')
    expect(stale.breaker.state).toBe('closed')
  })

  test('a wall clock set back by a year neither keeps it open nor opens it early', async () => {
    const modelled = await opened()
    modelled.clock.setWallMs(0)
    modelled.clock.advance(999)
    expect(await callTimes(modelled, 1)).toBe(0)
    modelled.clock.advance(1)
    expect(await callTimes(modelled, 1)).toBe(1)
  })
})
