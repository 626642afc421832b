import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { outboundChannels, PricingClient } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { VirtualClock } from '../support/virtual-clock.ts'
import { AttemptLedger } from './attempt-ledger.ts'
import { EMPTY_SHELF } from './priced-client.ts'
import { stage } from './staged-transport.ts'

vi.mock('../../src/outbound/transport.ts', () => import('./staged-transport.ts'))

const ways = fc.constantFrom('win' as const, 'fail' as const, 'hang' as const)

describe('the chain of the pricing client', () => {
  test('leaves an attempt at most attemptMs ≤ totalMs ≤ leaseMs ≤ what the request has, and keeps a true ledger', async () => {
    const budgetsMs = fc.record({
      neededInMs: fc.integer({ min: -10, max: 300 }),
      leaseMs: fc.integer({ min: 5, max: 200 }),
      totalMs: fc.integer({ min: 5, max: 200 }),
      attemptMs: fc.integer({ min: 1, max: 200 }),
      retryMaxAttempts: fc.integer({ min: 0, max: 4 }),
    })
    const wayIn = fc.record({ how: ways, afterMs: fc.nat({ max: 60 }) })
    await fc.assert(
      fc.asyncProperty(
        budgetsMs,
        fc.array(wayIn, { maxLength: 5 }),
        fc.option(fc.nat({ max: 150 }), { nil: undefined }),
        async ({ neededInMs, ...budgets }, ways, hangUpInMs) => {
          const clock = new VirtualClock()
          const channels = outboundChannels()
          const ledger = new AttemptLedger(channels)
          const startMs = clock.nowMs()
          const sent: { leftMs: number; endsInMs: number; passedMs: number }[] = []
          stage.onSend = exchange => {
            const way = ways[sent.length] ?? { how: 'hang', afterMs: 0 }
            const endsInMs = exchange.endsAtMs() - clock.nowMs()
            sent.push({ leftMs: exchange.leftMs, endsInMs, passedMs: clock.nowMs() - startMs })
            exchange.obey()
            const end = () => (way.how === 'win' ? exchange.price() : exchange.reset())
            if (way.how !== 'hang') clock.setTimer(end, way.afterMs)
          }
          const client = new PricingClient('http://127.0.0.1', outboundOptions.parse(budgets), {
            channels,
            clock,
            shelf: EMPTY_SHELF,
          })
          const request = new AbortController()
          if (hangUpInMs !== undefined) clock.setTimer(() => request.abort(new Error('hung up')), hangUpInMs)
          let endedAtMs: number | undefined
          const outcome = client
            .fetch({
              currency: 'USD',
              skus: ['SKU-1'],
              neededByMs: startMs + neededInMs,
              signal: request.signal,
              traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
            })
            .catch(() => undefined)
            .finally(() => {
              endedAtMs = clock.nowMs()
            })
          await clock.advanceAsync(400)
          await outcome

          // Over by the nearest of its limits, and the timers' one millisecond.
          const limitMs = Math.max(0, Math.min(neededInMs, budgets.leaseMs, budgets.totalMs))
          expect((endedAtMs ?? Number.NaN) - startMs).toBeLessThanOrEqual(limitMs + 1)
          expect(ledger.calls).toHaveLength(1)
          for (const { leftMs, endsInMs, passedMs } of sent) {
            expect(leftMs).toBeGreaterThanOrEqual(2)
            expect(leftMs).toBe(Math.min(budgets.attemptMs, endsInMs))
            expect(leftMs).toBeLessThanOrEqual(budgets.totalMs - passedMs)
            expect(leftMs).toBeLessThanOrEqual(budgets.leaseMs - passedMs)
            expect(leftMs).toBeLessThanOrEqual(neededInMs - passedMs)
          }
          expect(sent.length).toBeLessThanOrEqual(budgets.retryMaxAttempts + 1)
          expect(ledger.retries).toBeLessThanOrEqual(budgets.retryMaxAttempts)
          ledger.expectBalanced(sent.length)
          expect(ledger.results.won).toBe(ledger.calls[0] === 'ok' ? 1 : 0)
          expect(clock.pendingTimers).toBe(0)
          expect(getEventListeners(request.signal, 'abort')).toEqual([])
        },
      ),
      { numRuns: 300 },
    )
  })

  test('opens the breaker on pricing that fails and then asks nothing of it', async () => {
    const clock = new VirtualClock({ startMs: 1_000_000 })
    const channels = outboundChannels()
    const calls: string[] = []
    channels.call.subscribe(({ result }) => calls.push(result))
    let launched = 0
    stage.onSend = exchange => {
      launched++
      exchange.reset()
    }
    const options = outboundOptions.parse({
      retryMaxAttempts: 0,
      breaker: { samplingSeconds: 1, minimumRps: 5, halfOpenAfterMs: 100, halfOpenCalls: 1 },
    })
    const client = new PricingClient('http://127.0.0.1', options, {
      channels,
      clock,
      shelf: EMPTY_SHELF,
    })
    const fetch = async (signal = new AbortController().signal) => {
      const price = client
        .fetch({ currency: 'USD', skus: ['SKU-1'], neededByMs: clock.nowMs() + 100, signal, traceparent: '' })
        .catch(() => undefined)
      await clock.advanceAsync(options.batch.windowMs)
      await price
    }
    // A storm of clients that hang up says nothing about pricing.
    for (let hangUps = 0; hangUps < 20; hangUps++) await fetch(AbortSignal.abort())
    expect(client.breakerState).toBe('closed')
    for (let failures = 0; failures < 8; failures++) await fetch()
    expect(client.breakerState).toBe('open')
    expect(launched).toBe(5)
    expect(calls.slice(20)).toEqual([
      'failed',
      'failed',
      'failed',
      'failed',
      'failed',
      'shed',
      'shed',
      'shed',
    ])
    clock.advance(100)
    stage.onSend = exchange => exchange.price()
    await fetch()
    expect(client.breakerState).toBe('closed')
  })
})
