import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { attempt } from '../../src/outbound/attempt.ts'
import { OutboundFailure, type PriceCall, type PriceList } from '../../src/outbound/call.ts'
import { hedge } from '../../src/outbound/hedge.ts'
import { outboundChannels } from '../../src/outbound/index.ts'
import { LatencyWindow } from '../../src/outbound/latency-window.ts'
import { RetryBudget } from '../../src/outbound/retry-budget.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { AttemptLedger } from './attempt-ledger.ts'

const HUNG_UP = new Error('nobody waits')
const ATTEMPT_MS = 40
/** The usual latency, and so the delay of a hedge. */
const USUAL_MS = 10

interface Attempt {
  readonly result: PromiseWithResolvers<PriceList>
  readonly signal: AbortSignal
  readonly claim: () => boolean
  over: boolean
}

/** Races over attempts that end as the test says. */
function racing({ maxRatio = 1, extraRatio = 1, enabled = true } = {}) {
  const clock = new VirtualClock()
  const channels = outboundChannels()
  const ledger = new AttemptLedger(channels)
  const latencies = new LatencyWindow(clock)
  for (let observed = 0; observed < 20; observed++) latencies.observe(USUAL_MS)
  const hedges = new RetryBudget(maxRatio)
  const extras = new RetryBudget(extraRatio)
  const attempts: Attempt[] = []
  const options = { enabled, percentile: 0.95, minDelayMs: 5, maxRatio }
  const parts = { options, attemptMs: ATTEMPT_MS, latencies, hedges, extras, channels, clock }
  const fetch = hedge(parts, ({ signal, claim }) => {
    const one: Attempt = { result: Promise.withResolvers(), signal, claim, over: false }
    attempts.push(one)
    signal.addEventListener('abort', () => fail(one, signal.reason))
    return one.result.promise
  })
  const race = () => {
    const request = new AbortController()
    const call = callUntil(clock.nowMs() + 1_000, request.signal)
    return { request, outcome: fetch(call).catch((error: unknown) => error) }
  }
  return { clock, ledger, parts, extras, hedges, attempts, race }
}

function callUntil(endsAtMs: number, signal = new AbortController().signal): PriceCall {
  return {
    currency: 'USD',
    skus: ['A'],
    endsAtMs,
    endedBy: 'limit',
    signal,
    traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
  }
}

function succeed(one: Attempt, list: PriceList): boolean {
  if (one.over) return false
  one.over = true
  const won = one.claim()
  if (won) one.result.resolve(list)
  else one.result.reject(new OutboundFailure('shed'))
  return won
}

function fail(one: Attempt, error: unknown): void {
  if (!one.over) one.result.reject(error)
  one.over = true
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat({ max: 12 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('succeed' as const, 'fail' as const, 'expire' as const, 'refuse' as const),
      which: fc.nat({ max: 1 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const) }) },
)

describe('the hedge', () => {
  test('keeps its promises under every order of success, failure, refusal, time and departure', async () => {
    const tokens = fc.record({
      maxRatio: fc.constantFrom(0, 1),
      extraRatio: fc.constantFrom(0, 1),
      enabled: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(tokens, fc.array(step, { maxLength: 12 }), async (tokens, steps) => {
        const { clock, ledger, attempts, race } = racing(tokens)
        const allowed = tokens.enabled && tokens.maxRatio + tokens.extraRatio === 2
        const { request, outcome } = race()
        const startMs = clock.nowMs()
        let expected: unknown
        let wins = 0
        for (const step of [...steps, { do: 'advance', ms: 20 } as const, { do: 'leave' } as const]) {
          const running = attempts.filter(({ over }) => !over)
          if (step.do === 'leave') {
            request.abort(HUNG_UP)
            expected ??= HUNG_UP
          } else if (step.do === 'advance') {
            const before = attempts.length
            const wasOpen = expected === undefined
            await clock.advanceAsync(step.ms)
            const isTime = clock.nowMs() - startMs >= USUAL_MS
            if (wasOpen) expect(attempts).toHaveLength(allowed && isTime ? 2 : 1)
            else expect(attempts).toHaveLength(before)
          } else {
            const one = attempts[step.which]
            if (one === undefined || one.over) continue
            const error = new OutboundFailure(
              ({ fail: 'failed', expire: 'timeout', refuse: 'refused', succeed: 'shed' } as const)[step.do],
            )
            const list: PriceList = { prices: new Map(), unknown: [], bad: [], source: 'live' }
            if (step.do !== 'succeed') fail(one, error)
            else if (succeed(one, list)) wins++
            // The first success and any refusal decide; of failures the last.
            if (step.do === 'succeed') expected ??= list
            else if (step.do === 'refuse' || running.length === 1) expected ??= error
          }
          await promisesSettled()
          expect(await Promise.race([outcome, Promise.resolve()])).toBe(expected)
          if (expected === undefined) continue
          // Losers are cancelled, and nothing of the race is left.
          expect(attempts.filter(({ over }) => !over)).toEqual([])
          expect(clock.pendingTimers).toBe(0)
          expect(getEventListeners(request.signal, 'abort')).toEqual([])
        }
        expect(wins).toBeLessThanOrEqual(1)
        expect(ledger.hedged).toBe(attempts.length - 1)
        expect(ledger.hedges.won).toBeLessThanOrEqual(wins)
        expect(ledger.hedges.shed).toBeLessThanOrEqual(tokens.enabled && !allowed ? 1 : 0)
      }),
      { numRuns: 1_000 },
    )
  })

  test('that is throttled returns the first error at once', async () => {
    for (const tokens of [{ maxRatio: 0 }, { extraRatio: 0 }]) {
      const { clock, ledger, attempts, race } = racing(tokens)
      const { outcome } = race()
      await clock.advanceAsync(USUAL_MS + 1)
      expect(ledger.hedges).toEqual({ won: 0, lost: 0, shed: 1 })
      const error = new OutboundFailure('failed')
      for (const one of attempts) fail(one, error)
      expect(await outcome).toBe(error)
      expect(attempts).toHaveLength(1)
    }
  })

  test('does not begin before it knows what is usual, nor when it is switched off', async () => {
    const { clock, parts, attempts, race } = racing({ enabled: false })
    const off = race()
    await clock.advanceAsync(100)
    off.request.abort(HUNG_UP)
    expect(attempts).toHaveLength(1)
    let launched = 0
    const unknowing = {
      ...parts,
      latencies: new LatencyWindow(clock),
      options: { ...parts.options, enabled: true },
    }
    const fetch = hedge(unknowing, () => {
      launched++
      return new Promise(() => {})
    })
    const request = new AbortController()
    fetch(callUntil(10_000, request.signal)).catch(() => {})
    await clock.advanceAsync(1_000)
    request.abort(HUNG_UP)
    expect(launched).toBe(1)
  })

  test('adds at most maxRatio of the calls, and gives back the token that the shared budget refuses', async () => {
    const { clock, attempts, hedges, extras, race } = racing({ maxRatio: 0.05, extraRatio: 0 })
    const storm = async (calls: number) => {
      const before = attempts.length
      const races = Array.from({ length: calls }, race)
      await clock.advanceAsync(USUAL_MS + 1)
      for (const { request } of races) request.abort(HUNG_UP)
      return attempts.length - before - calls
    }
    expect(await storm(100)).toBe(0)
    for (let calls = 0; calls < 1_000; calls++) extras.refund()
    expect(extras.withdraw()).toBe(true)
    // Its own bucket is as full as it was: ten, and one more for every twenty calls.
    expect(await storm(1)).toBe(1)
    for (let calls = 0; calls < 1_000; calls++) extras.refund()
    expect(await storm(100)).toBeLessThanOrEqual(10)
    for (let rounds = 0; rounds < 10; rounds++) hedges.withdraw()
    for (let calls = 0; calls < 1_000; calls++) extras.refund()
    expect(await storm(1_000)).toBeLessThanOrEqual(50)
  })

  test('learns nothing from an attempt that was never sent', async () => {
    const { clock, parts } = racing()
    const latencies = new LatencyWindow(clock)
    const transport = { send: () => new Promise<PriceList>(() => {}) }
    const launch = attempt({ transport, options: { attemptMs: 40 }, channels: parts.channels, clock })
    const fetch = hedge({ ...parts, latencies }, launch)
    for (let calls = 0; calls < 20; calls++) {
      await expect(fetch(callUntil(clock.nowMs() + 1))).rejects.toMatchObject({ kind: 'timeout' })
    }
    clock.advance(100)
    expect(latencies.percentileMs(0.95)).toBeUndefined()
  })

  /** What is usual after twenty attempts that got no answer within `leftMs`; timers fire `earlyMs` early. */
  async function usualAfterSilence({ leftMs, earlyMs = 0 }: { leftMs: number; earlyMs?: number }) {
    const clock = new VirtualClock({ earlyMs: () => earlyMs })
    const { parts } = racing()
    const latencies = new LatencyWindow(clock)
    const transport = {
      send: (_call: unknown, signal: AbortSignal) =>
        new Promise<PriceList>((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
        ),
    }
    const options = { ...parts.options, enabled: false }
    const launch = attempt({ transport, options: { attemptMs: ATTEMPT_MS }, channels: parts.channels, clock })
    const fetch = hedge({ ...parts, options, latencies, clock }, launch)
    for (let calls = 0; calls < 20; calls++) {
      const outcome = fetch(callUntil(clock.nowMs() + leftMs)).catch((error: unknown) => error)
      await clock.advanceAsync(ATTEMPT_MS)
      expect(await outcome).toMatchObject({ kind: 'timeout' })
    }
    clock.advance(100)
    return latencies.percentileMs(0.95)
  }

  test('learns from an attempt that used up all its time, and not from one that its call cut short', async () => {
    const usualMs = await usualAfterSilence({ leftMs: 1_000 })
    expect(Math.abs((usualMs ?? 0) - ATTEMPT_MS)).toBeLessThanOrEqual(ATTEMPT_MS * 0.02)
    expect(await usualAfterSilence({ leftMs: ATTEMPT_MS / 2 })).toBeUndefined()
  })

  test('learns so from an attempt whose timer fired within its millisecond early, too', async () => {
    expect(await usualAfterSilence({ leftMs: 1_000, earlyMs: 0.5 })).toBeDefined()
  })
})
