import fc from 'fast-check'
import { LoopClock, leaseChannels } from '../../src/lease/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

/** The error of the charge: two beats. */
export const ERROR_MS = 10

export interface Request {
  /** When its bytes became ready. */
  readonly readyMs: number
  /** How long its handler keeps the loop busy. */
  readonly busyMs: number
  /** When its new connection joined the listen queue; left out on one that is open. */
  readonly joinedMs?: number
}

export interface Seen {
  readonly atMs: number
  readonly waitedMs: number
  readonly chargedMs: number
  /** How long, within the last `chargedMs + ERROR_MS`, the loop was busy or stopped, or in turns that accepted. */
  readonly awayMs: number
}

export interface Load {
  readonly requests: readonly Request[]
  /** Timers that keep the loop busy. */
  readonly tasks?: readonly { atMs: number; busyMs: number }[]
  /** Moments at which the whole process is stopped, wherever it stands (SIGSTOP, a hypervisor's pause). */
  readonly stops?: readonly { atMs: number; stoppedMs: number }[]
  /** Where the listening socket comes among the events of a poll: before or after all others. */
  readonly acceptsLast?: boolean
  readonly earlyMs?: () => number
}

/** A request on a connection that is open, or has just been accepted. */
interface Open extends Request {
  readonly since?: (() => number | undefined) | undefined
}

/**
 * Plays a load on a model of the event loop and tells what the loop clock charged each request. As in libuv, a
 * poll hands out what was ready when it returned; the listen queue gives one connection a poll, which is read in
 * the next (measured with Node.js 24: 600 connections after a stall, 600 turns, each read one turn later).
 */
export function play({
  requests,
  tasks = [],
  stops = [],
  acceptsLast = false,
  earlyMs = () => 0,
}: Load): Seen[] {
  const clock = new VirtualClock({ startMs: 0, earlyMs })
  const loopClock = new LoopClock(clock, leaseChannels().loopLag)
  const open: Open[] = requests.filter(({ joinedMs }) => joinedMs === undefined).sort(byReadiness)
  const queue = requests.flatMap(request =>
    request.joinedMs === undefined ? [] : [{ ...request, joinedMs: request.joinedMs }],
  )
  queue.sort((one, other) => one.joinedMs - other.joinedMs)
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

  const handle = ({ readyMs, busyMs, since }: Open) => {
    const atMs = clock.nowMs()
    const chargedMs = loopClock.hiddenWaitMs(since?.())
    const awayMs = awayWithin(atMs - chargedMs - ERROR_MS, atMs)
    seen.push({ atMs, waitedMs: atMs - readyMs, chargedMs, awayMs })
    pass(busyMs, beAway)
  }

  for (const task of tasks) clock.setTimer(() => pass(task.busyMs, beAway), task.atMs)
  while (open.length + queue.length > 0) {
    const began = { atMs: clock.nowMs(), spans: away.length }
    clock.turn(() => {
      const nextMs = Math.min(open[0]?.readyMs ?? Infinity, queue[0]?.joinedMs ?? Infinity)
      pass(Math.min(Math.max(0, nextMs - clock.nowMs()), clock.pollTimeoutMs), ms => clock.block(ms))
      const nowMs = clock.nowMs()
      const ready = open.splice(0, open.filter(request => request.readyMs <= nowMs).length)
      const accepted = queue.splice(0, queue[0] && queue[0].joinedMs <= nowMs ? 1 : 0)
      if (acceptsLast) ready.forEach(handle)
      for (const request of accepted) open.push({ ...request, since: loopClock.accepted() })
      open.sort(byReadiness)
      if (!acceptsLast) ready.forEach(handle)
      // One span for the turn in the place of those within it.
      if (accepted[0]) away.splice(began.spans, Infinity, { fromMs: began.atMs, toMs: clock.nowMs() })
    })
  }
  return seen
}

function byReadiness(one: Request, other: Request): number {
  return one.readyMs - other.readyMs
}

export const eighthsMs = (min: number, max: number) =>
  fc.integer({ min: min * 8, max: max * 8 }).map(eighths => eighths / 8)
export const earlyMs = fc.integer({ min: 0, max: 15 }).map(eighths => () => eighths / 8)
export const request = fc.record({
  readyMs: eighthsMs(0, 500),
  busyMs: fc.oneof(eighthsMs(0, 2), eighthsMs(0, 60)),
})
export const tasks = fc.array(fc.record({ atMs: eighthsMs(0, 400), busyMs: eighthsMs(0, 200) }), {
  maxLength: 5,
})
export const stops = fc.array(fc.record({ atMs: eighthsMs(0, 400), stoppedMs: eighthsMs(0, 200) }), {
  maxLength: 5,
})
