import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { admissionChannels, Gate, type Permit } from '../../src/admission/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

/** One half leaves the measured time as it is, without jitter. */
const unspread = () => 0.5

function gateOf(maxConcurrent: number, random: () => number = unspread) {
  const clock = new VirtualClock()
  const channels = admissionChannels()
  const rejected: string[] = []
  channels.rejected.subscribe(({ scope }) => rejected.push(scope))
  return { gate: new Gate({ maxConcurrent }, channels, clock, random), clock, rejected }
}

function enterAll(gate: Gate, count: number): Permit[] {
  return Array.from({ length: count }, () => gate.enter()).filter(permit => permit !== undefined)
}

/** Serves `perSecond` requests a second, evenly. */
function serve(gate: Gate, clock: VirtualClock, perSecond: number, seconds = 3): void {
  for (let served = 0; served < perSecond * seconds; served++) {
    const permit = gate.enter()
    clock.advance(1000 / perSecond)
    permit?.release()
  }
}

/** The measured window holds one release more or less, depending on where its edges fall. */
function expectWithin2Percent(actual: number, expected: number): void {
  expect(actual).toBeGreaterThan(expected * 0.98)
  expect(actual).toBeLessThan(expected * 1.02)
}

describe('the gate', () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ do: fc.constant('enter' as const) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('release' as const), which: fc.nat({ max: 20 }) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.nat({ max: 3_000 }) }) },
  )

  test('holds between 0 and its maximum, and neither loses nor doubles a permit', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.array(step, { maxLength: 60 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (maxConcurrent, steps, drawn) => {
          const { gate, clock, rejected } = gateOf(maxConcurrent, () => drawn)
          const issued: Permit[] = []
          const held = new Set<Permit>()
          let refused = 0
          for (const step of steps) {
            if (step.do === 'advance') clock.advance(step.ms)
            if (step.do === 'enter') {
              const permit = gate.enter()
              expect(permit !== undefined).toBe(held.size < maxConcurrent)
              if (permit === undefined) refused++
              else {
                issued.push(permit)
                held.add(permit)
              }
            }
            if (step.do === 'release') {
              // Often one that has been released before.
              const permit = issued[step.which]
              permit?.release()
              if (permit !== undefined) held.delete(permit)
            }
            expect(gate.inFlight).toBe(held.size)
            expect(rejected).toHaveLength(refused)
            const retryAfterMs = gate.retryAfterMs()
            expect(Number.isInteger(retryAfterMs)).toBe(true)
            expect(retryAfterMs).toBeGreaterThanOrEqual(20)
            expect(retryAfterMs).toBeLessThanOrEqual(30_000)
          }
          for (const permit of issued) permit.release()
          expect(gate.inFlight).toBe(0)
          expect(enterAll(gate, maxConcurrent + 1)).toHaveLength(maxConcurrent)
        },
      ),
    )
  })

  test('takes 60 of 150 that come at once and refuses 90', () => {
    const { gate, rejected } = gateOf(60)
    expect(enterAll(gate, 150)).toHaveLength(60)
    expect(gate.inFlight).toBe(60)
    expect(rejected).toEqual(new Array(90).fill('global'))
  })

  test('gives a permit back once, though it be released twice while another holds the place', () => {
    const { gate } = gateOf(1)
    const first = gate.enter()
    first?.release()
    const second = gate.enter()
    first?.release()
    expect(gate.inFlight).toBe(1)
    expect(gate.enter()).toBeUndefined()
    second?.release()
    expect(gate.inFlight).toBe(0)
  })
})

describe('retryAfterMs', () => {
  test('is about a second while nothing has been released to measure', () => {
    const { gate } = gateOf(60)
    enterAll(gate, 150)
    expect(gate.retryAfterMs()).toBe(1_000)
  })

  test.each([100, 250, 1_000])(
    'at %i releases a second is the time in which the holders are served',
    perSecond => {
      const { gate, clock } = gateOf(60)
      serve(gate, clock, perSecond)
      enterAll(gate, 60)
      expectWithin2Percent(gate.retryAfterMs(), (60 * 1000) / perSecond)
    },
  )

  test.each([0, 1, 499, 850, 999])(
    'is the true figure right after a cold start %i ms into a second, and right after idleness',
    intoSecondMs => {
      const { gate, clock } = gateOf(60)
      clock.advance(intoSecondMs)
      for (const [perSecond, seconds, idleMs] of [
        [100, 0.3, 2_000],
        [250, 0.1, 3_600_000],
        [1_000, 0.02, 0],
      ] as const) {
        serve(gate, clock, perSecond, seconds)
        const permits = enterAll(gate, 60)
        expectWithin2Percent(gate.retryAfterMs(), (60 * 1000) / perSecond)
        for (const permit of permits) permit.release()
        clock.advance(idleMs)
      }
    },
  )

  test('counts those refused lately, who will come back too', () => {
    const { gate, clock } = gateOf(60)
    serve(gate, clock, 100)
    enterAll(gate, 60 + 140)
    expectWithin2Percent(gate.retryAfterMs(), ((60 + 140) * 1000) / 100)
  })

  test('stays within 20 ms and 30 s at either end of the rate', () => {
    const fast = gateOf(1)
    serve(fast.gate, fast.clock, 1_000)
    expect(fast.gate.retryAfterMs()).toBe(20)

    const slow = gateOf(60)
    const [first, second] = enterAll(slow.gate, 60)
    first?.release()
    slow.clock.advance(900)
    second?.release()
    enterAll(slow.gate, 10_000)
    expect(slow.gate.retryAfterMs()).toBe(30_000)
  })

  test('spreads by half of itself to both sides, with the draw', () => {
    const draws = [0, 0.25, 0.5, 0.75, 0.9999]
    const { gate } = gateOf(1, () => draws.shift() ?? 0)
    expect([1, 2, 3, 4, 5].map(() => gate.retryAfterMs())).toEqual([500, 750, 1_000, 1_250, 1_500])
  })

  test('sends refused callers back at moments of their own', () => {
    const { gate } = gateOf(1, Math.random)
    const moments = new Set(Array.from({ length: 1_000 }, () => gate.retryAfterMs()))
    expect(moments.size).toBeGreaterThan(200)
    expect(Math.min(...moments)).toBeGreaterThanOrEqual(500)
    expect(Math.max(...moments)).toBeLessThanOrEqual(1_500)
  })
})
