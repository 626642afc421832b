import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ReleaseRate } from '../../src/admission/release-rate.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const FALLBACK_MS = 12_345

function rateAt(startMs: number) {
  const clock = new VirtualClock({ startMs })
  return { rate: new ReleaseRate(clock), clock }
}

describe('the release rate', () => {
  test('measures what happened in this second and the one before it, and nothing older', () => {
    const step = fc.record({
      do: fc.constantFrom('released' as const, 'refused' as const),
      afterMs: fc.oneof(fc.constantFrom(0, 1, 999, 1_000, 1_001, 2_000), fc.nat({ max: 4_000 })),
    })
    fc.assert(
      fc.property(
        fc.nat({ max: 5_000 }),
        fc.array(step),
        fc.nat({ max: 4_000 }),
        (startMs, steps, restMs) => {
          const { rate, clock } = rateAt(startMs)
          const log: { what: string; atMs: number }[] = []
          /** The first release since there was none to remember. */
          let firstMs = 0
          const sinceMs = () => (Math.floor(clock.nowMs() / 1_000) - 1) * 1_000
          const count = (what: string) =>
            log.filter(entry => entry.what === what && entry.atMs >= sinceMs()).length
          const check = () => {
            const intervals = count('released') - 1
            const windowMs = clock.nowMs() - Math.max(firstMs, sinceMs())
            const expected =
              intervals >= 1 && windowMs > 0 ? ((7 + count('refused')) * windowMs) / intervals : FALLBACK_MS
            expect(rate.clearsInMs(7, FALLBACK_MS)).toBe(expected)
          }
          for (const { do: what, afterMs } of steps) {
            clock.advance(afterMs)
            if (what === 'released' && count(what) === 0) firstMs = clock.nowMs()
            rate[what]()
            log.push({ what, atMs: clock.nowMs() })
            check()
          }
          clock.advance(restMs)
          check()
        },
      ),
    )
  })

  test.each([
    ['at the last moment of the next second', 1_999, (5 * 1_999) / 1],
    ['at the edge of the second after', 2_000, FALLBACK_MS],
    ['after an hour of silence', 3_600_000, FALLBACK_MS],
  ])('two releases at the start of a second are forgotten or not: %s', (_, laterMs, expectedMs) => {
    const { rate, clock } = rateAt(10_000)
    rate.released()
    rate.released()
    clock.advance(laterMs)
    expect(rate.clearsInMs(5, FALLBACK_MS)).toBe(expectedMs)
  })

  test('tells the true figure from the second release on, wherever in a second it began', () => {
    const eighths = fc.integer({ min: 1, max: 800 })
    fc.assert(
      fc.property(
        fc.nat({ max: 5_000 }),
        eighths,
        fc.integer({ min: 1, max: 10 }),
        (startMs, every, more) => {
          const everyMs = every / 8
          const { rate, clock } = rateAt(startMs)
          rate.released()
          for (let released = 0; released < more; released++) {
            clock.advance(everyMs)
            rate.released()
            expect(rate.clearsInMs(7, FALLBACK_MS)).toBe(7 * everyMs)
          }
        },
      ),
    )
  })

  test.each([
    ['refusals alone', ['refused', 'refused']],
    ['one release', ['released']],
    ['two releases of the same moment', ['released', 'released']],
  ] as const)('is never divided by nothing: %s leave the fallback', (_, events) => {
    const { rate } = rateAt(0)
    for (const event of events) rate[event]()
    expect(rate.clearsInMs(5, FALLBACK_MS)).toBe(FALLBACK_MS)
  })
})
