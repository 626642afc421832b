import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LoopClock, leaseChannels } from '../../src/lease/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

/** The error of the charge: two beats. */
const ERROR_MS = 10

interface Request {
  /** When its bytes became ready, on a connection that is open. */
  readonly readyMs: number
  /** How long its handler keeps the loop busy. */
  readonly busyMs: number
}

interface Seen {
  readonly atMs: number
  readonly waitedMs: number
  readonly chargedMs: number
  /** How long the loop had been busy or stopped within the last `chargedMs + ERROR_MS`. */
  readonly awayMs: number
}

interface Load {
  readonly requests: readonly Request[]
  /** Timers that keep the loop busy. */
  readonly tasks?: readonly { atMs: number; busyMs: number }[]
  /** Moments at which the whole process is stopped, wherever it stands (SIGSTOP, a hypervisor's pause). */
  readonly stops?: readonly { atMs: number; stoppedMs: number }[]
  readonly earlyMs?: () => number
}

/** Plays a load on a model of the event loop and tells what the loop clock charged each request. */
function play({ requests, tasks = [], stops = [], earlyMs = () => 0 }: Load): Seen[] {
  const clock = new VirtualClock({ startMs: 0, earlyMs })
  const loopClock = new LoopClock(clock, leaseChannels().loopLag)
  const waiting = [...requests].sort((one, other) => one.readyMs - other.readyMs)
  const ahead = [...stops].sort((one, other) => one.atMs - other.atMs)
  const away: { fromMs: number; toMs: number }[] = []
  const seen: Seen[] = []

  const beAway = (ms: number) => {
    away.push({ fromMs: clock.nowMs(), toMs: clock.nowMs() + ms })
    clock.block(ms)
  }
  const awayWithin = (fromMs: number, toMs: number) =>
    away.reduce(
      (sum, span) => sum + Math.max(0, Math.min(toMs, span.toMs) - Math.max(fromMs, span.fromMs)),
      0,
    )

  /** Lets `ms` pass, at work or asleep in the poll; a stop lengthens work, but the sleeper's alarm still rings. */
  const pass = (ms: number, spend: (ms: number) => void) => {
    let leftMs = ms
    for (let stop = ahead[0]; stop && stop.atMs <= clock.nowMs() + leftMs; stop = ahead[0]) {
      ahead.shift()
      const untilMs = Math.max(0, stop.atMs - clock.nowMs())
      spend(untilMs)
      beAway(stop.stoppedMs)
      leftMs = Math.max(0, leftMs - untilMs - (spend === beAway ? 0 : stop.stoppedMs))
    }
    spend(leftMs)
  }

  for (const task of tasks) clock.setTimer(() => pass(task.busyMs, beAway), task.atMs)
  while (waiting.length > 0) {
    clock.turn(() => {
      const nextMs = Math.max(0, (waiting[0]?.readyMs ?? 0) - clock.nowMs())
      pass(Math.min(nextMs, clock.pollTimeoutMs), ms => clock.block(ms))
      const ready = waiting.filter(request => request.readyMs <= clock.nowMs())
      waiting.splice(0, ready.length)
      for (const { readyMs, busyMs } of ready) {
        const atMs = clock.nowMs()
        const chargedMs = loopClock.hiddenWaitMs()
        const awayMs = awayWithin(atMs - chargedMs - ERROR_MS, atMs)
        seen.push({ atMs, waitedMs: atMs - readyMs, chargedMs, awayMs })
        pass(busyMs, beAway)
      }
    })
  }
  return seen
}

const eighthsMs = (min: number, max: number) =>
  fc.integer({ min: min * 8, max: max * 8 }).map(eighths => eighths / 8)
const earlyMs = fc.integer({ min: 0, max: 7 }).map(eighths => () => eighths / 8)
const request = fc.record({ readyMs: eighthsMs(0, 500), busyMs: fc.oneof(eighthsMs(0, 2), eighthsMs(0, 60)) })

describe('the loop clock', () => {
  test('charges at least what a request waited less two beats, and no more than the loop was away', () => {
    fc.assert(
      fc.property(
        fc.record({
          requests: fc.array(request, { maxLength: 20 }),
          tasks: fc.array(fc.record({ atMs: eighthsMs(0, 400), busyMs: eighthsMs(0, 200) }), {
            maxLength: 5,
          }),
          stops: fc.array(fc.record({ atMs: eighthsMs(0, 400), stoppedMs: eighthsMs(0, 200) }), {
            maxLength: 5,
          }),
          earlyMs,
        }),
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
