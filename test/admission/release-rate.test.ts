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
          const check = () => {
            const sinceMs = (Math.floor(clock.nowMs() / 1_000) - 1) * 1_000
            const count = (what: string) =>
              log.filter(entry => entry.what === what && entry.atMs >= sinceMs).length
            const expected = count('released')
              ? ((7 + count('refused')) * (clock.nowMs() - sinceMs)) / count('released')
              : FALLBACK_MS
            expect(rate.clearsInMs(7, FALLBACK_MS)).toBe(expected)
          }
          for (const { do: what, afterMs } of steps) {
            clock.advance(afterMs)
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
  ])('a release at the start of a second is forgotten or not: %s', (_, laterMs, expectedMs) => {
    const { rate, clock } = rateAt(10_000)
    rate.released()
    clock.advance(laterMs)
    expect(rate.clearsInMs(5, FALLBACK_MS)).toBe(expectedMs)
  })

  test('is never divided by nothing: refusals alone leave the fallback', () => {
    const { rate } = rateAt(0)
    rate.refused()
    expect(rate.clearsInMs(5, FALLBACK_MS)).toBe(FALLBACK_MS)
  })
})
