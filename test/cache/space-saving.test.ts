import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SpaceSaving } from '../../src/cache/space-saving.ts'

/** Half of the keys have the same ending, so that they share a bucket of the filter. */
const ENDING = ':the-same-ending'
const KEYS = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', '', '\0', '\ud800', 'é', 'e\u0301'],
  ...Array.from({ length: 12 }, (_, index) => `order:v1:demo:full:${index}`),
  ...Array.from({ length: 20 }, (_, index) => `${String(index).padStart(2, '0')}${ENDING}`),
]

const observations = (maxTimes: number) =>
  fc.array(fc.tuple(fc.constantFrom(...KEYS), fc.integer({ min: 1, max: maxTimes })), { maxLength: 400 })
const weighted = fc.constantFrom(3, 16, 1e9).chain(observations)

/** Observes all, and asks of everything that the counters say whether it is so. */
function judge(counters: number, stream: readonly (readonly [key: string, times: number])[]): void {
  const sketch = new SpaceSaving(counters)
  const exact = new Map<string, number>()
  let total = 0
  for (const [key, times] of stream) {
    const sure = sketch.observe(key, times)
    const truth = (exact.get(key) ?? 0) + times
    exact.set(key, truth)
    total += times
    const top = sketch.top()
    const own = top.find(counter => counter.key === key)
    expect(sure).toBe(own ? own.count - own.error : 0)
    expect(sure).toBeLessThanOrEqual(truth)
    expect(sketch.total).toBe(total)
    expect(top.length).toBeLessThanOrEqual(counters)
    expect(top.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(total)
    for (const { key, count, error } of top) {
      expect(count).toBeGreaterThanOrEqual(exact.get(key) ?? 0)
      expect(count - error).toBeLessThanOrEqual(exact.get(key) ?? 0)
      expect(error).toBeLessThanOrEqual(total / counters)
      expect(error).toBeGreaterThanOrEqual(0)
    }
    const held = new Set(top.map(({ key }) => key))
    for (const [key, truth] of exact) if (truth > total / counters) expect(held).toContain(key)
  }
}

describe('Space-Saving', () => {
  test('keeps what it promises of every key, whatever comes, one at a time', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 10 }), observations(1), judge))
  })

  test('and with weights', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 10 }), weighted, judge), { numRuns: 200 })
  })

  test('is exact as long as there are counters for all', () => {
    fc.assert(
      fc.property(weighted, stream => {
        const sketch = new SpaceSaving(KEYS.length)
        const exact = new Map<string, number>()
        for (const [key, times] of stream) {
          sketch.observe(key, times)
          exact.set(key, (exact.get(key) ?? 0) + times)
        }
        const top = sketch.top()
        expect(new Map(top.map(({ key, count }) => [key, count]))).toEqual(exact)
        expect(top.every(({ error }) => error === 0)).toBe(true)
        expect(top.map(({ count }) => count)).toEqual([...exact.values()].sort((one, other) => other - one))
      }),
    )
  })

  test('remembers nothing once it is cleared', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), weighted, weighted, (m, one, two) => {
        const [used, fresh] = [new SpaceSaving(m), new SpaceSaving(m)]
        for (const [key, times] of one) used.observe(key, times)
        used.clear()
        expect([used.total, used.top()]).toEqual([0, []])
        for (const [key, times] of two) expect(used.observe(key, times)).toBe(fresh.observe(key, times))
        expect([used.total, used.top()]).toEqual([fresh.total, fresh.top()])
      }),
    )
  })

  test('counts the longest keys, and longer ones in the total only', () => {
    const sketch = new SpaceSaving(4)
    const longest = 'k'.repeat(256)
    expect(sketch.observe(longest, 3)).toBe(3)
    expect(sketch.observe(`${longest}k`, 1_000)).toBe(0)
    expect(sketch.total).toBe(1_003)
    expect(sketch.top()).toEqual([{ key: longest, count: 3, error: 0 }])
  })

  test.each([0, -1, Number.NaN])('takes a weight of %s for no observation', times => {
    const sketch = new SpaceSaving(2)
    sketch.observe('one', 5)
    expect(sketch.observe('one', times)).toBe(0)
    expect(sketch.observe('other', times)).toBe(0)
    expect([sketch.total, sketch.top()]).toEqual([5, [{ key: 'one', count: 5, error: 0 }]])
  })

  test('keeps a flood of distinct keys out of its counters: errors stay far below the bound', () => {
    const sketch = new SpaceSaving(48)
    for (let index = 0; index < 100_000; index++) sketch.observe(`order:v1:demo:full:${index}`, 1)
    // The bound is 1/48; without the filter the errors come to 1/53.
    for (const { error } of sketch.top()) expect(error).toBeLessThan(100_000 / 500)
  })

  test('takes less than 64 KiB, whatever its keys are cut out of', () => {
    const flooded = () => {
      const sketch = new SpaceSaving(48)
      for (let index = 0; index < 1_000; index++) sketch.observe(`${'key '.repeat(60)}${index}`, 1)
      // All of the counters go to these: each key alone would hold on to a text of 16 KiB.
      for (let index = 0; index < 48; index++) {
        sketch.observe(`${'body'.repeat(4_096)}${index}`.slice(-240), 1_000)
      }
      return sketch
    }
    flooded()
    const before = heldBytes()
    const sketches = Array.from({ length: 40 }, flooded)
    const bytes = (heldBytes() - before) / sketches.length
    expect(bytes).toBeLessThan(65_536)
    // Measured at all.
    expect(bytes).toBeGreaterThan(48 * 240)
  })
})

function heldBytes(): number {
  expect(globalThis.gc).toBeTypeOf('function')
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
