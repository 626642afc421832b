import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LoopClock, leaseChannels } from '../../src/lease/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'
import { ERROR_MS, earlyMs, eighthsMs, play, request, stops, tasks } from './loop-model.ts'

describe('the loop clock', () => {
  test('charges at least what a request waited less two beats, and no more than the loop was away', () => {
    fc.assert(
      fc.property(
        fc.record({ requests: fc.array(request, { maxLength: 20 }), tasks, stops, earlyMs }),
        load => {
          for (const { waitedMs, chargedMs, awayMs } of play(load)) {
            expect(chargedMs).toBeGreaterThanOrEqual(waitedMs - ERROR_MS)
            expect(chargedMs).toBeGreaterThanOrEqual(0)
            expect(chargedMs).toBeLessThanOrEqual(awayMs)
          }
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('charges nothing on a loop that keeps up, though requests come in pairs', () => {
    const pair = fc.record({ gapMs: eighthsMs(4, 20), busyMs: eighthsMs(0, 1) })
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 60 }), earlyMs, (pairs, earlyMs) => {
        let readyMs = 0
        const requests = pairs.flatMap(({ gapMs, busyMs }) => {
          readyMs += gapMs
          return [
            { readyMs, busyMs },
            { readyMs, busyMs },
          ]
        })
        for (const { chargedMs } of play({ requests, earlyMs })) expect(chargedMs).toBe(0)
      }),
      { numRuns: 300 },
    )
  })

  test('charges nothing to a request that comes after a long sleep of an idle loop', () => {
    expect(play({ requests: [{ readyMs: 60_000, busyMs: 0 }] })).toMatchObject([
      { waitedMs: 0, chargedMs: 0 },
    ])
  })

  test('sees the 370 ms that a request waited while a timer blocked the loop for 400', () => {
    const requests = [{ readyMs: 50, busyMs: 0 }]
    const [seen] = play({ requests, tasks: [{ atMs: 20, busyMs: 400 }] })
    expect(seen).toMatchObject({ atMs: 420, waitedMs: 370 })
    expect(seen?.chargedMs).toBeGreaterThanOrEqual(360)
    expect(seen?.chargedMs).toBeLessThanOrEqual(400)
  })

  test('sees the wait behind other requests of the same poll', () => {
    const requests = [
      { readyMs: 50, busyMs: 400 },
      { readyMs: 50, busyMs: 0 },
      { readyMs: 60, busyMs: 0 },
    ]
    const [, second, third] = play({ requests })
    expect(second?.waitedMs).toBe(400)
    expect(second?.chargedMs).toBeGreaterThanOrEqual(390)
    expect(third?.waitedMs).toBe(390)
    expect(third?.chargedMs).toBeGreaterThanOrEqual(380)
  })

  test('sees a stop of the process inside the poll, after which I/O runs before any timer', () => {
    const [seen] = play({ requests: [{ readyMs: 53, busyMs: 0 }], stops: [{ atMs: 52, stoppedMs: 300 }] })
    expect(seen).toMatchObject({ atMs: 352, waitedMs: 299 })
    expect(seen?.chargedMs).toBeGreaterThanOrEqual(289)
    expect(seen?.chargedMs).toBeLessThanOrEqual(300)
  })

  test('reports how late each beat was, never less than 0', () => {
    const clock = new VirtualClock({ earlyMs: () => 0.875 })
    const { loopLag } = leaseChannels()
    const lags: number[] = []
    loopLag.subscribe(({ lagMs }) => lags.push(lagMs))
    new LoopClock(clock, loopLag)
    clock.advance(50)
    expect(lags.length).toBeGreaterThanOrEqual(10)
    expect(new Set(lags)).toEqual(new Set([0]))
    clock.block(400)
    clock.advance(0)
    expect(lags.at(-1)).toBeGreaterThan(390)
    expect(lags.at(-1)).toBeLessThanOrEqual(400)
  })

  test('leaves no timer when it is stopped, however often', () => {
    const clock = new VirtualClock()
    const loopClock = new LoopClock(clock, leaseChannels().loopLag)
    clock.advance(23)
    expect(clock.pendingTimers).toBe(1)
    loopClock.stop()
    loopClock.stop()
    clock.advance(100)
    expect(clock.pendingTimers).toBe(0)
  })
})
