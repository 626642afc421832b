import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sleep } from '../../src/runtime/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

/** What became of a sleep: `{ slept: true }`, or the reason for which it ended. */
function outcomeOf(sleeping: Promise<void>): Promise<{ slept: true } | { reason: unknown }> {
  return sleeping.then(
    () => ({ slept: true }),
    (reason: unknown) => ({ reason }),
  )
}

test('a sleep ends at its time or with the reason of the abort, whichever is first, and leaves nothing', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 50 }),
      fc.option(fc.integer({ min: 0, max: 60 })),
      async (delayMs, abortAfterMs) => {
        const clock = new VirtualClock()
        const controller = new AbortController()
        const reason = new Error('stop')
        let endedAfterMs = -1
        const outcome = outcomeOf(sleep(clock, delayMs, controller.signal)).finally(() => {
          endedAfterMs = clock.nowMs() - 1_000
        })
        await clock.advanceAsync(abortAfterMs ?? 0)
        if (abortAfterMs !== null) controller.abort(reason)
        await clock.advanceAsync(60)

        const cutShort = abortAfterMs !== null && abortAfterMs < delayMs
        expect(await outcome).toEqual(cutShort ? { reason } : { slept: true })
        expect(endedAfterMs).toBe(cutShort ? abortAfterMs : delayMs)
        expect(clock.pendingTimers).toBe(0)
        expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
      },
    ),
    { numRuns: 60 },
  )
})

test('a sleep under a signal that has already aborted does not begin', async () => {
  const clock = new VirtualClock()
  const reason = new Error('stop')
  const signal = AbortSignal.abort(reason)
  const outcome = outcomeOf(sleep(clock, 10, signal))
  expect(clock.pendingTimers).toBe(0)
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  expect(await outcome).toEqual({ reason })
})

test('an abort leaves no timer behind, at once', () => {
  const clock = new VirtualClock()
  const controller = new AbortController()
  const outcome = outcomeOf(sleep(clock, 10, controller.signal))
  expect(clock.pendingTimers).toBe(1)
  controller.abort()
  expect(clock.pendingTimers).toBe(0)
  return outcome
})

test('10,000 sleeps under one long-lived signal leave no listener on it', async () => {
  const clock = new VirtualClock()
  const controller = new AbortController()
  for (let round = 0; round < 100; round++) {
    const sleeping = Array.from({ length: 100 }, () => sleep(clock, 5, controller.signal))
    clock.advance(5)
    await Promise.all(sleeping)
  }
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  expect(clock.pendingTimers).toBe(0)
})
