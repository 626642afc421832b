import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { FailureWindow } from '../../src/outbound/failure-window.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('count' as const), good: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat({ max: 400 }) }) },
  // An idle gap, often a whole number of windows: the same buckets come round again.
  { weight: 1, arbitrary: fc.record({ do: fc.constant('idle' as const), windows: fc.nat({ max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const) }) },
)

/** Plays `steps` beside a plain list of what happened when. */
function play(
  startMs: number,
  samplingSeconds: number,
  steps: (typeof step extends fc.Arbitrary<infer T> ? T : never)[],
) {
  const clock = new VirtualClock({ startMs })
  const window = new FailureWindow(samplingSeconds, clock)
  const windowMs = samplingSeconds * 1000
  let counted: { atMs: number; good: boolean }[] = []
  for (const step of steps) {
    if (step.do === 'advance') clock.advance(step.ms * samplingSeconds)
    if (step.do === 'idle') clock.advance(step.windows * windowMs)
    if (step.do === 'clear') {
      window.clear()
      counted = []
    }
    if (step.do === 'count') {
      window.count(step.good)
      counted.push({ atMs: clock.nowMs(), good: step.good })
    }
    const ageMs = (call: { atMs: number }) => clock.nowMs() - call.atMs
    const surely = counted.filter(call => ageMs(call) <= windowMs * 0.9)
    const possibly = counted.filter(call => ageMs(call) < windowMs)
    const { calls, failureRatio } = window.read()
    const bad = Math.round(calls * failureRatio)
    const isBad = (call: { good: boolean }) => !call.good
    expect(calls).toBeGreaterThanOrEqual(surely.length)
    expect(calls).toBeLessThanOrEqual(possibly.length)
    expect(bad).toBeGreaterThanOrEqual(surely.filter(isBad).length)
    expect(bad).toBeLessThanOrEqual(possibly.filter(isBad).length)
  }
}

describe('the failure window', () => {
  test('counts all of its last nine tenths and nothing older than itself, whatever the gaps', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1_000_000, max: 1_002_000 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { maxLength: 60 }),
        play,
      ),
      { numRuns: 500 },
    )
  })

  it('forgets what was cleared, in the first seconds of a process too', () => {
    const clock = new VirtualClock({ startMs: 100 })
    const window = new FailureWindow(10, clock)
    window.count(false)
    window.clear()
    expect(window.read()).toEqual({ calls: 0, failureRatio: 0 })
  })

  test('says 0 of 0 while nothing was counted', () => {
    expect(new FailureWindow(10, new VirtualClock()).read()).toEqual({ calls: 0, failureRatio: 0 })
  })

  test('does not take what an earlier round left in a bucket for recent', () => {
    const clock = new VirtualClock({ startMs: 1_000_000 })
    const window = new FailureWindow(10, clock)
    for (let calls = 0; calls < 50; calls++) window.count(false)
    clock.advance(3_600_000)
    expect(window.read()).toEqual({ calls: 0, failureRatio: 0 })
    window.count(true)
    expect(window.read()).toEqual({ calls: 1, failureRatio: 0 })
  })

  test('lets a call out by its far edge, a tenth at a time', () => {
    const clock = new VirtualClock({ startMs: 1_000_000 })
    const window = new FailureWindow(10, clock)
    window.count(false)
    clock.advance(1_000)
    window.count(true)
    clock.advance(8_999)
    expect(window.read()).toEqual({ calls: 2, failureRatio: 0.5 })
    clock.advance(1)
    expect(window.read()).toEqual({ calls: 1, failureRatio: 0 })
    clock.advance(1_000)
    expect(window.read()).toEqual({ calls: 0, failureRatio: 0 })
  })
})
