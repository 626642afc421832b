import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ListenQueue } from '../../src/lease/listen-queue.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

function listening() {
  const clock = new VirtualClock()
  const queue = new ListenQueue(clock)
  /** One turn of the loop whose poll accepts so many connections. */
  const accept = (count = 1) => {
    const told: ReturnType<ListenQueue['accepted']>[] = []
    clock.turn(() => {
      for (let accepted = 0; accepted < count; accepted++) told.push(queue.accepted())
    })
    return told
  }
  return { clock, queue, accept }
}

const LISTEN_QUEUE = 511

describe('the listen queue', () => {
  test('is calm at first: what is accepted cannot have waited', () => {
    expect(listening().accept(3)).toEqual([undefined, undefined, undefined])
  })

  test('is suspect after a stall, and tells of a connection up to the poll that reads its first bytes', () => {
    const { clock, queue, accept } = listening()
    queue.stalled(123)
    const [since] = accept()
    expect(since?.()).toBe(123)
    clock.turn(() => expect(since?.()).toBe(123))
    expect(since?.()).toBeUndefined()
  })

  test('is calm again after a poll that accepted nobody, and not before', () => {
    const { queue, accept } = listening()
    queue.stalled(123)
    for (let turn = 0; turn < 20; turn++) expect(accept()[0]?.()).toBe(123)
    accept(0)
    expect(accept()).toEqual([undefined])
  })

  test('is calm at once when nobody had come during the stall, and lets the loop sleep', () => {
    const { clock, queue, accept } = listening()
    queue.stalled(123)
    expect(clock.pollTimeoutMs).toBe(0)
    accept(0)
    expect(clock.pollTimeoutMs).toBe(Infinity)
    expect(accept()).toEqual([undefined])
  })

  test('is calm after the 511 that it holds, the last of them included', () => {
    const { clock, queue, accept } = listening()
    queue.stalled(123)
    const told = Array.from({ length: LISTEN_QUEUE }, () => accept()[0]?.())
    expect(told).toEqual(new Array(LISTEN_QUEUE).fill(123))
    expect(accept()).toEqual([undefined])
    accept(0)
    expect(clock.pollTimeoutMs).toBe(Infinity)
  })

  test('holds on to the first stall while it is suspect, and takes the next once it was calm', () => {
    const { queue, accept } = listening()
    queue.stalled(123)
    accept()
    queue.stalled(456)
    expect(accept()[0]?.()).toBe(123)
    accept(0)
    queue.stalled(789)
    expect(accept()[0]?.()).toBe(789)
  })

  test('follows its state machine, whatever comes in whatever order', () => {
    const turn = fc.record({
      stalls: fc.boolean(),
      accepts: fc.oneof(
        { weight: 20, arbitrary: fc.nat({ max: 3 }) },
        { weight: 1, arbitrary: fc.constantFrom(LISTEN_QUEUE - 1, LISTEN_QUEUE) },
      ),
    })
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 40 }), turns => {
        const clock = new VirtualClock()
        const queue = new ListenQueue(clock)
        let suspect: { sinceMs: number; left: number } | undefined
        /** Those accepted under suspicion in the poll before. */
        let fresh: { since: (() => number | undefined) | undefined; sinceMs: number }[] = []
        for (const { stalls, accepts } of turns) {
          clock.block(1)
          if (stalls) queue.stalled(clock.nowMs())
          // A further stall may have filled the queue anew.
          if (stalls) suspect = { sinceMs: suspect?.sinceMs ?? clock.nowMs(), left: LISTEN_QUEUE }
          const readNext: typeof fresh = []
          clock.turn(() => {
            for (let accepted = 0; accepted < accepts; accepted++) {
              const since = queue.accepted()
              expect(since?.()).toBe(suspect?.sinceMs)
              if (suspect === undefined) continue
              readNext.push({ since, sinceMs: suspect.sinceMs })
              if (--suspect.left === 0) suspect = undefined
            }
            expect(fresh.filter(({ since, sinceMs }) => since?.() !== sinceMs)).toEqual([])
          })
          expect(fresh.filter(({ since }) => since?.() !== undefined)).toEqual([])
          fresh = readNext
          if (accepts === 0) suspect = undefined
        }
      }),
      { numRuns: 300 },
    )
  })
})
