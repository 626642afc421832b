import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  OutboundFailure,
  type OutboundFailureKind,
  type PriceCall,
  type PriceList,
} from '../../src/outbound/call.ts'
import { longestBackoffMs, outboundChannels } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { retry } from '../../src/outbound/retry.ts'
import { RetryBudget } from '../../src/outbound/retry-budget.ts'
import type { Timer } from '../../src/runtime/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const LIST: PriceList = { prices: new Map(), unknown: [], bad: [], source: 'live' }

/** Notes each delay that it is asked for. */
class NotingClock extends VirtualClock {
  readonly delaysMs: number[] = []

  override setTimer(fire: () => void, delayMs: number): Timer {
    this.delaysMs.push(delayMs)
    return super.setTimer(fire, delayMs)
  }
}

function retrying(
  options: { retryMaxAttempts?: number; retryDelayMs?: number; retryMaxDelayMs?: number } = {},
  extras = new RetryBudget(1),
) {
  const clock = new NotingClock()
  const channels = outboundChannels()
  let retries = 0
  channels.retry.subscribe(() => retries++)
  const request = new AbortController()
  const results: (PriceList | Error)[] = []
  let launched = 0
  const fetch = retry(
    outboundOptions.parse(options),
    extras,
    channels,
    clock,
  )(async () => {
    launched++
    const result = results.shift() ?? new OutboundFailure('failed')
    if (result instanceof Error) throw result
    return result
  })
  const call = (leftMs = 100_000): PriceCall => ({
    currency: 'USD',
    skus: ['SKU-1'],
    endsAtMs: clock.nowMs() + leftMs,
    endedBy: 'limit',
    signal: request.signal,
    traceparent: '',
  })
  return {
    clock,
    request,
    results,
    counts: () => ({ launched, retries }),
    run: (leftMs?: number) => fetch(call(leftMs)).catch((error: unknown) => error),
  }
}

describe('the retry', () => {
  test.each<OutboundFailureKind>(['failed', 'timeout'])(
    'follows an attempt that %s by one more',
    async kind => {
      const { clock, results, counts, run } = retrying()
      results.push(new OutboundFailure(kind), LIST)
      const outcome = run()
      await clock.advanceAsync(10)
      expect(await outcome).toBe(LIST)
      expect(counts()).toEqual({ launched: 2, retries: 1 })
    },
  )

  test.each([
    new OutboundFailure('refused'),
    new OutboundFailure('budget'),
    new OutboundFailure('shed'),
    new Error('the request ended'),
  ])('does not follow %s', async error => {
    const { clock, results, counts, run } = retrying({ retryMaxAttempts: 5 })
    results.push(error)
    expect(await run()).toBe(error)
    expect(counts()).toEqual({ launched: 1, retries: 0 })
    expect(clock.pendingTimers).toBe(0)
  })

  test('gives up with the last failure after retryMaxAttempts', async () => {
    const { clock, results, counts, run } = retrying({ retryMaxAttempts: 2 })
    const last = new OutboundFailure('timeout')
    results.push(new OutboundFailure('failed'), new OutboundFailure('failed'), last)
    const outcome = run()
    await clock.advanceAsync(100)
    expect(await outcome).toBe(last)
    expect(counts()).toEqual({ launched: 3, retries: 2 })
  })

  test('ends its sleep with the request, leaving neither timer nor listener nor a further attempt', async () => {
    const { clock, request, counts, run } = retrying({ retryDelayMs: 10_000, retryMaxDelayMs: 10_000 })
    const outcome = run()
    await clock.advanceAsync(0)
    expect(clock.pendingTimers).toBe(1)
    const reason = new Error('hung up')
    request.abort(reason)
    expect(await outcome).toBe(reason)
    expect(clock.pendingTimers).toBe(0)
    expect(getEventListeners(request.signal, 'abort')).toEqual([])
    await clock.advanceAsync(20_000)
    expect(counts()).toEqual({ launched: 1, retries: 0 })
  })

  test('sleeps within the jittered, doubled, bounded delay, and all of it within longestBackoffMs', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          retryMaxAttempts: fc.integer({ min: 0, max: 5 }),
          retryDelayMs: fc.nat({ max: 1_000 }),
          retryMaxDelayMs: fc.nat({ max: 4_000 }),
        }),
        async options => {
          const { clock, counts, run } = retrying(options)
          const outcome = run()
          await clock.advanceAsync(longestBackoffMs(options) + options.retryMaxAttempts)
          expect(await outcome).toMatchObject({ kind: 'failed' })
          expect(counts()).toEqual({
            launched: options.retryMaxAttempts + 1,
            retries: options.retryMaxAttempts,
          })
          for (const [index, delayMs] of clock.delaysMs.entries()) {
            const boundMs = Math.min(options.retryMaxDelayMs, options.retryDelayMs * 2 ** index)
            expect(delayMs).toBeGreaterThanOrEqual(0)
            expect(delayMs).toBeLessThanOrEqual(boundMs)
          }
          const sleptMs = clock.delaysMs.reduce((sum, delayMs) => sum + delayMs, 0)
          expect(sleptMs).toBeLessThanOrEqual(longestBackoffMs(options))
        },
      ),
    )
  })

  test('spends its token at the decision: of 1,000 failures at once, the budget alone says how many follow', async () => {
    const { clock, counts, run } = retrying({ retryDelayMs: 1_000 }, new RetryBudget(0.1))
    const outcomes = Promise.all(Array.from({ length: 1_000 }, () => run()))
    await clock.advanceAsync(2_000)
    await outcomes
    expect(counts()).toEqual({ launched: 1_000 + counts().retries, retries: counts().retries })
    // Ten at the start. What the calls put in cannot be there: the bucket was full while they came.
    expect(counts().retries).toBe(10)
  })

  test('gives up with the failure when the budget has no token', async () => {
    const { clock, results, counts, run } = retrying({}, new RetryBudget(0))
    const failure = new OutboundFailure('failed')
    results.push(failure, LIST)
    expect(await run()).toBe(failure)
    expect({ ...counts(), timers: clock.pendingTimers }).toEqual({ launched: 1, retries: 0, timers: 0 })
  })

  test('spreads its delays over their whole length', async () => {
    const delaysMs: number[] = []
    for (let calls = 0; calls < 300; calls++) {
      const { clock, run } = retrying({ retryDelayMs: 1_000, retryMaxDelayMs: 1_000 })
      const outcome = run()
      await clock.advanceAsync(1_001)
      await outcome
      delaysMs.push(...clock.delaysMs)
    }
    expect(new Set(delaysMs).size).toBeGreaterThan(150)
    expect(Math.min(...delaysMs)).toBeLessThan(100)
    expect(Math.max(...delaysMs)).toBeGreaterThan(900)
  })

  test('is not begun when its back-off would leave under 2 ms of the call', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), async leftMs => {
        const { clock, counts, run } = retrying({ retryDelayMs: 40, retryMaxDelayMs: 40 })
        const endsAtMs = clock.nowMs() + leftMs
        const outcome = run(leftMs)
        await clock.advanceAsync(leftMs)
        // Settled by the end, one way or the other, without having slept past it.
        expect(clock.pendingTimers).toBe(0)
        expect(await outcome).toMatchObject({ kind: 'failed' })
        // What is left after it is enough for an attempt.
        for (const delayMs of clock.delaysMs) expect(delayMs).toBeLessThanOrEqual(leftMs - 2)
        expect(counts().launched).toBe(1 + clock.delaysMs.length)
        expect(clock.nowMs()).toBe(endsAtMs)
      }),
    )
  })
})
