import { describe, expect, test } from 'vitest'
import { lifecycleChannels, WarmUp } from '../../src/lifecycle/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

/** A warm-up whose steps answer with what `troubles` says at the moment, `stepMs` after they were asked. */
function warming(stepMs = 1) {
  const clock = new VirtualClock()
  const channels = lifecycleChannels()
  const warmUp = new WarmUp(clock, channels.warmUpFailed)
  const failures: string[] = []
  channels.warmUpFailed.subscribe(({ reason }) => failures.push(reason))
  const troubles: { one?: string; other?: string } = {}
  const played: string[] = []
  const stop = new AbortController()
  const step = (name: 'one' | 'other') => ({
    name,
    play: async () => {
      await new Promise<void>(resolve => clock.setTimer(resolve, stepMs))
      played.push(name)
      return troubles[name]
    },
  })
  let passed: boolean | undefined
  const run = () => {
    void warmUp.run([step('one'), step('other')], stop.signal).then(result => {
      passed = result
    })
  }
  return { clock, warmUp, troubles, played, failures, stop, run, passed: () => passed }
}

describe('the warm-up', () => {
  test('plays all steps in turn, many times, and has passed', async () => {
    const { clock, run, played, passed, warmUp } = warming()
    run()
    await clock.advanceAsync(10_000)
    expect(passed()).toBe(true)
    expect(played.slice(0, 4)).toEqual(['one', 'other', 'one', 'other'])
    expect(played.length).toBeGreaterThanOrEqual(100)
    expect(warmUp.degraded()).toBeUndefined()
    expect(clock.pendingTimers).toBe(0)
  })

  test('ends soon where the steps are slow, once each has been played', async () => {
    const slow = warming(300)
    slow.run()
    await slow.clock.advanceAsync(1_300)
    expect(slow.passed()).toBe(true)
    const slowest = warming(5_000)
    slowest.run()
    await slowest.clock.advanceAsync(9_999)
    expect(slowest.passed()).toBeUndefined()
    await slowest.clock.advanceAsync(1)
    expect(slowest.passed()).toBe(true)
    expect(slowest.played).toEqual(['one', 'other'])
  })

  test('of nothing has passed at once', async () => {
    const { warmUp, stop } = warming()
    expect(await warmUp.run([], stop.signal)).toBe(true)
  })

  test('does not pass while a step fails, says why, and tries again every half second', async () => {
    const { clock, run, troubles, played, failures, passed, warmUp } = warming()
    troubles.other = 'store-unavailable'
    expect(warmUp.degraded()).toBe('has not passed yet')
    run()
    await clock.advanceAsync(2)
    expect(warmUp.degraded()).toBe('other: store-unavailable')
    await clock.advanceAsync(60_000)
    expect(passed()).toBeUndefined()
    expect(played.length).toBeGreaterThan(200)
    expect(played.length).toBeLessThan(250)
    troubles.one = 'no answer'
    await clock.advanceAsync(1_000)
    expect(warmUp.degraded()).toBe('one: no answer')
    // Once for each reason, however often it is met.
    expect(failures).toEqual(['other: store-unavailable', 'one: no answer'])
    delete troubles.one
    delete troubles.other
    await clock.advanceAsync(2_000)
    expect(passed()).toBe(true)
    expect(warmUp.degraded()).toBeUndefined()
  })

  test('that fails in a later round has failed', async () => {
    const { clock, run, troubles, passed, failures } = warming()
    run()
    await clock.advanceAsync(20)
    troubles.one = 'no answer'
    await clock.advanceAsync(100)
    expect(failures).toEqual(['one: no answer'])
    expect(passed()).toBeUndefined()
  })

  test.each([
    ['in a step', 1.5],
    ['while it pauses', 250],
    ['before it has begun', 0],
  ])('gives up when it is stopped %s', async (_, ms) => {
    const { clock, run, troubles, stop, passed, played } = warming()
    troubles.other = 'no answer'
    if (ms === 0) stop.abort()
    run()
    await clock.advanceAsync(ms)
    stop.abort()
    await clock.advanceAsync(1)
    expect(passed()).toBe(false)
    const before = played.length
    await clock.advanceAsync(10_000)
    expect(played).toHaveLength(before)
    expect(clock.pendingTimers).toBe(0)
  })
})
