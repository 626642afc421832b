import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LatencyWindow } from '../../src/outbound/latency-window.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const ERROR = 0.02 + 1e-9
const latencies = fc.array(
  fc.oneof(
    fc.double({ min: 0.1, max: 100, noNaN: true }),
    fc.double({ min: 0.1, max: 60_000, noNaN: true }),
    fc.integer({ min: 1, max: 60 }),
  ),
  { minLength: 20, maxLength: 400 },
)

function windowOf(values: readonly number[], clock = new VirtualClock()) {
  const window = new LatencyWindow(clock)
  for (const value of values) window.observe(value)
  return { clock, window }
}

function exact(values: readonly number[], percentile: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.ceil(percentile * sorted.length) - 1] ?? Number.NaN
}

describe('the latency window', () => {
  test('tells any percentile within 2 % of an exact sort', () => {
    fc.assert(
      fc.property(latencies, fc.double({ min: 0.01, max: 0.999, noNaN: true }), (values, percentile) => {
        const told = windowOf(values).window.percentileMs(percentile) ?? Number.NaN
        const sorted = exact(values, percentile)
        expect(Math.abs(told - sorted)).toBeLessThanOrEqual(sorted * ERROR)
      }),
      { numRuns: 500 },
    )
  })

  test('slides: an observation counts for 25 s at least, and for 30 s at most', () => {
    const phases = fc.array(fc.record({ passedMs: fc.nat({ max: 12_000 }), values: latencies }), {
      minLength: 1,
      maxLength: 8,
    })
    fc.assert(
      fc.property(phases, phases => {
        const { clock, window } = windowOf([])
        const observed: { atMs: number; value: number }[] = []
        for (const { passedMs, values } of phases) {
          for (const value of values) {
            window.observe(value)
            observed.push({ atMs: clock.nowMs(), value })
          }
          // Asked anew, and not within the 100 ms for which an answer is kept.
          clock.advance(passedMs + 100)
          const told = window.percentileMs(0.95)
          const since = (ageMs: number) =>
            observed.filter(({ atMs }) => atMs > clock.nowMs() - ageMs).map(({ value }) => value)
          // Slots of 5 s leave as a whole.
          const slot = Math.floor(clock.nowMs() / 5_000) - 5
          const live = observed
            .filter(({ atMs }) => Math.floor(atMs / 5_000) >= slot)
            .map(({ value }) => value)
          expect(live.length).toBeGreaterThanOrEqual(since(25_000).length)
          expect(live.length).toBeLessThanOrEqual(since(30_001).length)
          if (live.length < 20) expect(told).toBeUndefined()
          else
            expect(Math.abs((told ?? Number.NaN) - exact(live, 0.95))).toBeLessThanOrEqual(
              exact(live, 0.95) * ERROR,
            )
        }
      }),
      { numRuns: 100 },
    )
  })

  test('knows nothing below 20 observations', () => {
    expect(windowOf(Array(19).fill(10)).window.percentileMs(0.5)).toBeUndefined()
    expect(windowOf(Array(20).fill(10)).window.percentileMs(0.5)).toBeCloseTo(10, 0)
  })

  test('forgets across an idle hour, even where the same slots come round again', () => {
    for (const idleMs of [30_000, 60_000, 3_600_000]) {
      const { clock, window } = windowOf(Array(1_000).fill(500))
      clock.advance(idleMs)
      expect(window.percentileMs(0.95)).toBeUndefined()
      for (let observed = 0; observed < 20; observed++) window.observe(5)
      clock.advance(100)
      expect(window.percentileMs(0.95)).toBeLessThan(6)
    }
  })

  test('takes what lies outside its range for the nearest that it can tell', () => {
    expect(windowOf(Array(20).fill(0)).window.percentileMs(0.95)).toBe(0.1)
    expect(windowOf(Array(20).fill(1e9)).window.percentileMs(0.95)).toBeGreaterThanOrEqual(58_000)
    expect(windowOf(Array(20).fill(1e9)).window.percentileMs(0.95)).toBeLessThanOrEqual(64_000)
  })

  test('takes as much memory for a million observations as for a thousand', () => {
    const { clock, window } = windowOf([])
    const observe = (count: number) => {
      for (let observed = 0; observed < count; observed++) {
        if (observed % 1_000 === 0) clock.advance(50)
        window.observe(0.1 + ((observed * 7919) % 60_000))
        if (observed % 500 === 0) window.percentileMs(0.95)
      }
      globalThis.gc?.()
      return process.memoryUsage().heapUsed
    }
    expect(globalThis.gc).toBeTypeOf('function')
    const before = observe(100_000)
    // A byte for each would be a million.
    expect(observe(1_000_000) - before).toBeLessThan(200_000)
  })
})
