import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { OutboundFailure } from '../../src/outbound/index.ts'
import { type Caller, HUNG_UP, type Schedule, type Seen, Story, saidOf, schedules } from './chain-story.ts'

vi.mock('../../src/outbound/transport.ts', () => import('./staged-transport.ts'))

const unhandled: unknown[] = []
const collect = (error: unknown) => void unhandled.push(error)
beforeAll(() => void process.on('unhandledRejection', collect))
afterAll(() => void process.off('unhandledRejection', collect))

/** Plays 300 schedules and holds each against one sentence. */
async function always(sentence: (story: Story) => void, look: (story: Story) => void = () => {}) {
  await fc.assert(
    fc.asyncProperty(schedules, async (schedule: Schedule) => {
      const story = new Story(schedule)
      await story.play(schedule.steps, () => look(story))
      sentence(story)
    }),
    { numRuns: 300 },
  )
}

const failureKind = ({ outcome }: Caller) => (outcome instanceof OutboundFailure ? outcome.kind : undefined)
const isOk = ({ outcome }: Caller) => outcome !== undefined && !(outcome instanceof Error)
const isWaiting = ({ endedMs }: Caller) => endedMs === undefined
const isLive = ({ end, exchange }: Seen) => end === undefined && !exchange.signal.aborted
const concerns = ({ exchange }: Seen, caller: Caller) =>
  exchange.currency === caller.currency && caller.skus.some(sku => exchange.skus.includes(sku))

/** Its bad answer ended the caller in the very millisecond in which another exchange was answered. */
const failed = (seen: Seen, caller: Caller) =>
  failureKind(caller) === 'failed' &&
  seen.restedMs === caller.endedMs &&
  caller.skus.some(sku => saidOf(seen, sku) === 'bad')

/** It ended when its attempt was over, to the millisecond by which timers may be early. */
const isAtItsMoment = ({ end, startedMs }: Seen, { options }: Story) =>
  end !== undefined && end.atMs >= startedMs + options.attemptMs - 1

/**
 * It is a hedge or a retry of a request that had asked for more SKUs, whose callers have left since: what it is
 * refused for is asked again alone all the same.
 */
function isOfShared(one: Seen, { seen }: Story): boolean {
  const [sku = ''] = one.exchange.skus
  return seen.some(({ exchange, startedMs }) => {
    const isEarlier = startedMs <= one.startedMs && exchange.skus.length > 1
    return isEarlier && exchange.currency === one.exchange.currency && exchange.skus.includes(sku)
  })
}

/** Asked for one SKU only, before the exchange began, and waited until `atMs` at least: it is that flight's. */
function waitersOf(seen: Seen, story: Story, atMs: number): Caller[] {
  return story.callers.filter(
    caller =>
      caller.skus.length === 1 &&
      concerns(seen, caller) &&
      caller.place < seen.place &&
      (caller.endedMs ?? Number.POSITIVE_INFINITY) >= atMs,
  )
}

describe('whatever pricing and the callers do, over the whole chain,', () => {
  test('each caller gets exactly one result, within its own limits', async () => {
    await always(({ callers, ledger, options }) => {
      for (const caller of callers) {
        const limitMs = Math.min(caller.neededByMs - caller.startedMs, options.totalMs, options.leaseMs)
        expect(caller.outcome).toBeDefined()
        // A timer is a millisecond long at least.
        expect((caller.endedMs ?? Number.NaN) - caller.startedMs).toBeLessThanOrEqual(Math.max(1, limitMs))
      }
      expect(ledger.calls).toHaveLength(callers.length)
    })
  })

  test('no price is invented: each was said for this SKU, in this currency, while its caller waited', async () => {
    await always(({ callers, seen }) => {
      for (const caller of callers.filter(isOk)) {
        const list = caller.outcome
        if (list === undefined || list instanceof Error) throw list
        expect([...list.prices.keys(), ...list.unknown].sort()).toEqual([...caller.skus].sort())
        expect(list).toMatchObject({ bad: [], source: 'live' })
        for (const sku of caller.skus) {
          const said = seen.filter(
            one =>
              one.exchange.currency === caller.currency &&
              one.end !== undefined &&
              one.end.atMs >= caller.startedMs &&
              one.end.atMs <= (caller.endedMs ?? 0) &&
              saidOf(one, sku) === (list.prices.get(sku) ?? 'unknown'),
          )
          expect(said).not.toEqual([])
        }
      }
    })
  })

  test('a caller that hangs up gets its own reason at once, and nobody else gets it', async () => {
    await always(({ callers }) => {
      for (const { outcome, hungUpMs, endedMs } of callers) {
        if (outcome === HUNG_UP) expect(endedMs).toBe(hungUpMs)
        else if (outcome instanceof Error) expect(outcome).toBeInstanceOf(OutboundFailure)
        if (hungUpMs !== undefined) expect(endedMs).toBeLessThanOrEqual(hungUpMs)
      }
    })
  })

  test('a failure is handed only to those whom it concerns and who were there when it happened', async () => {
    await always(story => {
      const { callers, seen, options } = story
      for (const caller of callers) {
        const kind = failureKind(caller)
        const { startedMs, endedMs = Number.NaN, neededByMs } = caller
        const then = seen.filter(one => concerns(one, caller) && one.restedMs === endedMs)
        const isOver = (limitMs: number) => endedMs >= limitMs - 2
        if (kind === 'failed') {
          expect(then.some(one => caller.skus.some(sku => saidOf(one, sku) === 'bad'))).toBe(true)
        }
        if (kind === 'refused') {
          // Its own call was: that of one SKU.
          const own = then.filter(({ exchange, end }) => {
            const isOwn = exchange.skus.length === 1 && caller.skus.includes(exchange.skus[0] ?? '')
            return end?.how === 'refuse' && isOwn
          })
          expect(own).not.toEqual([])
        }
        if (kind === 'budget') {
          expect(isOver(neededByMs)).toBe(true)
          expect(neededByMs - startedMs).toBeLessThanOrEqual(options.totalMs)
        }
        if (kind === 'timeout' && !isOver(startedMs + options.totalMs)) {
          expect(then.some(one => isAtItsMoment(one, story))).toBe(true)
        }
        // No loser's and no layer's own word reaches a caller.
        expect(kind).not.toBe('shed')
      }
    })
  })

  test('the first success wins, and the refusal of one SKU ends it, for all who wait for it', async () => {
    await always(story => {
      for (const one of story.seen) {
        const { end } = one
        const isRefusal = end?.how === 'refuse' && one.exchange.skus.length === 1 && !isOfShared(one, story)
        if (end?.how !== 'answer' && !isRefusal) continue
        // In the very millisecond in which its attempt is over, either may come first.
        if (isAtItsMoment(one, story)) continue
        for (const caller of waitersOf(one, story, end.atMs)) {
          const { endedMs, outcome } = caller
          expect(endedMs).toBe(end.atMs)
          const result = isOk(caller) ? 'answer' : failureKind(caller) === 'refused' ? 'refuse' : outcome
          if (result === end.how) continue
          // It ended of itself in this very millisecond, or the other attempt decided.
          const decided = story.seen.some(
            other => concerns(other, caller) && (other.end?.how === result || failed(other, caller)),
          )
          expect(
            decided || outcome === HUNG_UP || ['timeout', 'budget'].includes(failureKind(caller) ?? ''),
          ).toBe(true)
        }
      }
    })
  })

  test('a refusal of several SKUs refuses none of them: each is asked for again, alone and at once', async () => {
    let again = 0
    await always(story => {
      for (const one of story.seen) {
        const { end, exchange } = one
        if (end?.how !== 'refuse' || exchange.skus.length === 1 || isAtItsMoment(one, story)) continue
        // Another attempt of its race may have decided in this very millisecond.
        const decided = story.seen.some(
          other =>
            other !== one &&
            other.exchange.currency === exchange.currency &&
            other.exchange.skus.some(sku => exchange.skus.includes(sku)) &&
            other.end?.atMs === end.atMs &&
            other.startedMs < end.atMs,
        )
        if (decided) continue
        for (const caller of waitersOf(one, story, end.atMs)) {
          // It ended of itself then, or is about to: nothing is sent with less than 2 ms left.
          const limitMs = Math.min(caller.neededByMs, caller.startedMs + story.options.totalMs)
          if (caller.endedMs === end.atMs && (caller.outcome === HUNG_UP || limitMs - end.atMs < 2)) continue
          const alone = story.seen.filter(
            other =>
              other.startedMs === end.atMs &&
              other.place > one.place &&
              other.exchange.currency === caller.currency &&
              other.exchange.skus.length === 1 &&
              other.exchange.skus[0] === caller.skus[0],
          )
          expect(alone).toHaveLength(1)
          again++
        }
      }
    })
    expect(again).toBeGreaterThan(0)
  })

  test('the end of one caller cancels nothing that another one waits for', async () => {
    await always(story => {
      for (const one of story.seen) {
        const { end, exchange } = one
        if (end?.how !== 'aborted' || isAtItsMoment(one, story)) continue
        const decidedByAnother = story.seen.some(
          other =>
            other !== one &&
            other.exchange.currency === exchange.currency &&
            other.exchange.skus.some(sku => exchange.skus.includes(sku)) &&
            other.end?.atMs === end.atMs &&
            ['answer', 'partly', 'refuse'].includes(other.end.how),
        )
        if (decidedByAnother) continue
        expect(waitersOf(one, story, end.atMs).filter(({ endedMs }) => endedMs !== end.atMs)).toEqual([])
      }
    })
  })

  test('the last one out aborts the fetch: nothing is in flight that nobody waits for', async () => {
    await always(
      () => {},
      ({ callers, seen }) => {
        for (const one of seen.filter(isLive)) {
          expect(callers.some(caller => isWaiting(caller) && concerns(one, caller))).toBe(true)
        }
      },
    )
  })

  test('identical quotes share one request, and its hedge', async () => {
    await always(
      () => {},
      story => {
        const { seen, clock, options } = story
        const live = seen.filter(one => isLive(one) && waitersOf(one, story, clock.nowMs() + 1).length > 0)
        for (const { exchange } of live) {
          for (const sku of exchange.skus) {
            const same = live.filter(
              other => other.exchange.currency === exchange.currency && other.exchange.skus.includes(sku),
            )
            if (waitersOf(same[0] as Seen, story, clock.nowMs() + 1).every(({ skus }) => skus[0] !== sku))
              continue
            expect(same.length).toBeLessThanOrEqual(options.hedge.enabled ? 2 : 1)
          }
        }
      },
    )
  })

  test('extra attempts stay within their budgets, and batches within maxSize', async () => {
    await always(({ ledger, options }) => {
      const requests = ledger.batchSizes.length
      const { retries, hedged } = ledger
      const capacity = (ratio: number) => (ratio === 0 ? 0 : 10)
      const extraRatio = options.retryBudgetRatio
      expect(retries + hedged).toBeLessThanOrEqual(requests * extraRatio + capacity(extraRatio))
      const hedgeRatio = options.hedge.enabled ? options.hedge.maxRatio : 0
      expect(hedged).toBeLessThanOrEqual(requests * hedgeRatio + 1e-9)
      expect(ledger.launched).toBeLessThanOrEqual(requests + retries + hedged)
      for (const size of ledger.batchSizes) expect(size).toBeLessThanOrEqual(options.batch.maxSize)
    })
  })

  test('every attempt is accounted for, and no timer, listener or rejection is left', async () => {
    const met = new Set<string>()
    await always(story => {
      const { results, hedges } = story.ledger
      for (const [what, count] of Object.entries({ ...results, ...hedges })) if (count > 0) met.add(what)
      for (const result of story.ledger.calls) met.add(result)
      story.ledger.expectBalanced(story.seen.length)
      expect(story.ledger.results.late).toBe(0)
      expect(story.clock.pendingTimers).toBe(0)
      expect(story.listenersLeft()).toBe(0)
      expect(unhandled).toEqual([])
    })
    // The schedules reach every end that there is.
    const ends = [
      'ok',
      'failed',
      'refused',
      'timeout',
      'budget',
      'cancelled',
      'won',
      'lost',
      'expired',
      'shed',
    ]
    expect(ends.filter(end => !met.has(end))).toEqual([])
  })
})
