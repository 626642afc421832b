import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type HotKeyChange, type HotKeyOptions, HotKeys } from '../../src/cache/hot-keys.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const WINDOW_MS = 10_000
const DEFAULTS: HotKeyOptions = { share: 0.1, minSamples: 1_000, windowMs: WINDOW_MS }

/** At the beginning of a window, with what was reported, and a way to observe keys that come once each. */
function hotKeys(options: Partial<HotKeyOptions> = {}, listener = (_: HotKeyChange) => {}) {
  const clock = new VirtualClock({ startMs: 7 * WINDOW_MS })
  const changes: HotKeyChange[] = []
  const hot = new HotKeys({ ...DEFAULTS, ...options }, clock, change => {
    changes.push(change)
    listener(change)
  })
  let others = 0
  const observeOthers = (count: number) => {
    for (const end = others + count; others < end; others++) hot.observe(`other:${others}`)
  }
  return { clock, changes, hot, observeOthers }
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a key is hot', () => {
  test.each([
    { share: 0.1, minSamples: 1_000, own: 999, total: 999, expected: false },
    { share: 0.1, minSamples: 1_000, own: 1_000, total: 1_000, expected: true },
    { share: 0.1, minSamples: 1_000, own: 99, total: 1_000, expected: false },
    { share: 0.1, minSamples: 1_000, own: 100, total: 1_000, expected: true },
    // 0.07 × 100 is a little more than 7 in binary fractions.
    { share: 0.07, minSamples: 100, own: 7, total: 100, expected: true },
    { share: 1, minSamples: 1, own: 999, total: 1_000, expected: false },
    { share: 1, minSamples: 1, own: 1_000, total: 1_000, expected: true },
  ])('from share and minSamples on, exactly: $share, $minSamples, $own of $total, $expected', row => {
    const { hot, clock } = hotKeys({ share: row.share, minSamples: row.minSamples })
    hot.observe('other', row.total - row.own)
    for (let seen = 0; seen < row.own; seen++) hot.observe('key')
    expect(hot.isHot('key')).toBe(row.expected)
    clock.advance(WINDOW_MS)
    expect(hot.isHot('key')).toBe(row.expected)
  })

  test('at once, in the middle of a window, is told once, and reported with its share, the highest first', () => {
    const { hot, changes } = hotKeys()
    hot.observe('other', 900)
    for (let seen = 0; seen < 99; seen++) hot.observe('key')
    expect(changes).toEqual([])
    for (let seen = 0; seen < 500; seen++) hot.observe('key')
    expect(changes).toEqual([{ key: 'key', share: 0.1, hot: true }])
    hot.observe('other')
    expect(hot.report()).toEqual([
      { key: 'other', share: 901 / 1_500 },
      { key: 'key', share: 0.1 },
    ])
  })

  test('whatever its name, and an observation with weight counts as so many', () => {
    const keys = ['__proto__', 'constructor', 'toString', '', '\ud800', 'k'.repeat(256)]
    const { hot, changes } = hotKeys()
    for (const key of keys) expect(hot.isHot(key)).toBe(false)
    for (let round = 0; round < 20; round++) for (const key of keys) hot.observe(key, 16)
    for (const key of keys) expect(hot.isHot(key)).toBe(true)
    expect(changes.map(({ key }) => key).sort()).toEqual([...keys].sort())
    expect(hot.isHot('hasOwnProperty')).toBe(false)
  })

  test('not when it is longer than any that is kept, though it weighs in the total', () => {
    const { hot, clock } = hotKeys({ share: 0.5 })
    hot.observe('k'.repeat(257), 1_001)
    hot.observe('key', 1_000)
    clock.advance(WINDOW_MS)
    expect(hot.report()).toEqual([])
  })
})

describe('a verdict', () => {
  test('stands to the end of the window after its own, and is told when it ends', () => {
    const { hot, clock, changes, observeOthers } = hotKeys()
    hot.observe('key', 1_000)
    clock.advance(WINDOW_MS)
    hot.observe('key', 50)
    observeOthers(950)
    clock.advance(WINDOW_MS - 1)
    expect(hot.isHot('key')).toBe(true)
    clock.advance(1)
    expect(hot.isHot('key')).toBe(false)
    expect(changes).toEqual([
      { key: 'key', share: 1, hot: true },
      { key: 'key', share: 0.05, hot: false },
    ])
  })

  test('renewed in each window is told once, and reports the latest share', () => {
    const { hot, clock, changes, observeOthers } = hotKeys()
    for (const own of [1_000, 900, 800]) {
      observeOthers(1_000 - own)
      hot.observe('key', own)
      clock.advance(WINDOW_MS)
      expect(hot.report()).toEqual([{ key: 'key', share: own / 1_000 }])
    }
    expect(changes).toHaveLength(1)
  })

  test.each([
    (hot: HotKeys) => hot.observe('other'),
    (hot: HotKeys) => expect(hot.isHot('key')).toBe(false),
    (hot: HotKeys) => expect(hot.count).toBe(0),
    (hot: HotKeys) => expect(hot.report()).toEqual([]),
  ])('does not outlive a whole window of silence, whoever notices: %s', notice => {
    for (const idleMs of [2 * WINDOW_MS, 3 * WINDOW_MS, 360 * WINDOW_MS]) {
      const { hot, clock, changes } = hotKeys()
      hot.observe('key', 1_000)
      clock.advance(WINDOW_MS)
      expect(hot.isHot('key')).toBe(true)
      clock.advance(idleMs - WINDOW_MS)
      notice(hot)
      expect(changes.slice(1)).toEqual([{ key: 'key', share: 0, hot: false }])
    }
  })

  test('does not care where the wall clock goes, and needs no timer', () => {
    const { hot, clock } = hotKeys()
    hot.observe('key', 1_000)
    for (const wallMs of [clock.wallMs() + 1e12, 0, -1e12]) {
      clock.setWallMs(wallMs)
      expect(hot.isHot('key')).toBe(true)
    }
    clock.advance(2 * WINDOW_MS)
    expect(hot.isHot('key')).toBe(false)
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('all verdicts', () => {
  const KEYS = Array.from({ length: 12 }, (_, index) => `key:${index}`)
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(fc.constantFrom(...KEYS), fc.integer({ min: 1, max: 20 })) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 2.5 * WINDOW_MS }) },
  )
  const options = fc.record({
    share: fc.constantFrom(0.07, 0.1, 0.25, 0.5, 1),
    minSamples: fc.integer({ min: 1, max: 80 }),
  })

  type Seen = readonly (readonly [atMs: number, key: string, times: number])[]
  const sum = (seen: Seen) => seen.reduce((total, [, , times]) => total + times, 0)
  const windowOf = (atMs: number) => Math.floor(atMs / WINDOW_MS)

  test('are those of the definition, as long as each key has a counter', () => {
    fc.assert(
      fc.property(options, fc.array(step, { maxLength: 80 }), (options, steps) => {
        const { hot, clock, changes } = hotKeys(options)
        const all: [number, string, number][] = []
        const enough = (seen: Seen, key: string) =>
          sum(seen) >= options.minSamples &&
          sum(seen.filter(([, other]) => other === key)) / sum(seen) >= options.share
        for (const step of steps) {
          if (typeof step === 'number') clock.advance(step)
          else {
            hot.observe(...step)
            all.push([clock.nowMs(), ...step])
          }
          const now = windowOf(clock.nowMs())
          const last = all.filter(([atMs]) => windowOf(atMs) === now - 1)
          const running = all.filter(([atMs]) => windowOf(atMs) === now)
          const early = (key: string) =>
            running.some(([, other], at) => other === key && enough(running.slice(0, at + 1), key))
          const expected = KEYS.filter(key => enough(last, key) || early(key))
          expect(KEYS.filter(key => hot.isHot(key))).toEqual(expected)
          expect(new Set(hot.report().map(({ key }) => key))).toEqual(new Set(expected))
          expect(replay(changes)).toEqual(new Set(expected))
        }
        const least = (hot: boolean) => (hot ? options.share : 0)
        expect(changes.every(({ share, hot }) => share >= least(hot) && share <= 1)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  test('rest on shares that are lower bounds, and miss no key of share + 1/48, among any number of keys', () => {
    const heavy = fc.array(fc.tuple(fc.nat({ max: 20 }), fc.integer({ min: 1, max: 64 })), { maxLength: 300 })
    fc.assert(
      fc.property(heavy, fc.integer({ min: 1, max: 40 }), (heavy, lightEach) => {
        const { hot, clock, observeOthers } = hotKeys({ share: 0.05, minSamples: 1 })
        const exact = new Map<string, number>()
        for (const [number, times] of heavy) {
          hot.observe(`key:${number}`, times)
          observeOthers(lightEach)
          exact.set(`key:${number}`, (exact.get(`key:${number}`) ?? 0) + times)
        }
        clock.advance(WINDOW_MS)
        const total = heavy.reduce((total, [, times]) => total + times + lightEach, 0)
        const shareOf = (key: string) => (exact.get(key) ?? 1) / total
        for (const { key, share } of hot.report()) expect(share).toBeLessThanOrEqual(shareOf(key))
        for (const key of exact.keys()) if (shareOf(key) >= 0.05 + 1 / 48) expect(hot.isHot(key)).toBe(true)
      }),
    )
  })

  test('leave a flood of a million distinct keys cold, and find the one that is not part of it', () => {
    const { hot, clock, changes, observeOthers } = hotKeys()
    for (let burst = 0; burst < 100; burst++) {
      observeOthers(10_000)
      clock.advance(WINDOW_MS / 20)
    }
    expect([hot.count, changes]).toEqual([0, []])
    for (let seen = 0; seen < 5_000; seen++) {
      observeOthers(8)
      hot.observe('order:v1:demo:full:1')
    }
    expect(hot.report().map(({ key }) => key)).toEqual(['order:v1:demo:full:1'])
  })

  test('make no more than 32 keys hot, at once or at the end of a window', () => {
    const { hot, clock, changes } = hotKeys({ share: 0.02 })
    for (let number = 0; number < 40; number++) hot.observe(`key:${number}`, 100)
    for (let number = 0; number < 40; number++) hot.observe(`key:${number}`, number + 1)
    expect(hot.count).toBe(32)
    clock.advance(WINDOW_MS)
    expect(hot.count).toBe(32)
    expect(hot.isHot('key:39')).toBe(true)
    expect(hot.isHot('key:7')).toBe(false)
    expect(replay(changes).size).toBe(32)
  })
})

describe('a listener', () => {
  test('that throws harms nobody: the key is hot, and the process is warned', () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const { hot, clock } = hotKeys({}, () => {
      throw new Error('broken listener')
    })
    hot.observe('one', 1_000)
    hot.observe('other', 1_000)
    expect(hot.count).toBe(2)
    clock.advance(2 * WINDOW_MS)
    expect(hot.count).toBe(0)
    expect(warned).toHaveBeenCalledTimes(4)
  })

  test('that asks and observes meets a decided state, and hears each change once', () => {
    const { hot, clock, changes } = hotKeys({ minSamples: 10 }, change => {
      expect.soft(hot.isHot(change.key)).toBe(change.hot)
      if (changes.length === 3) hot.observe('storm', 100)
    })
    hot.observe('cools', 10)
    clock.advance(WINDOW_MS)
    hot.observe('late', 5)
    hot.observe('later', 5)
    clock.advance(WINDOW_MS)
    expect(hot.count).toBe(3)
    const told = changes.map(({ key, hot }) => `${key} ${hot}`)
    expect(told).toEqual(['cools true', 'later true', 'late true', 'storm true', 'cools false'])
  })
})

test('all of it takes less than 64 KiB, with the longest keys, wherever they were cut out of', () => {
  const clock = new VirtualClock({ startMs: 0 })
  const flooded = () => {
    const hot = new HotKeys({ share: 0.01, minSamples: 1, windowMs: WINDOW_MS }, clock, () => {})
    const observe = (from: number, count: number, times: number) => {
      const text = '漢字'.repeat(2_048)
      for (let index = from; index < from + count; index++) hot.observe(`${text}${index}`.slice(-256), times)
    }
    observe(0, 16, 100)
    clock.advance(WINDOW_MS)
    observe(16, 16, 100)
    observe(32, 100, 1)
    observe(132, 48, 10_000)
    expect(hot.count).toBe(32)
    return hot
  }
  const heldBytes = () => {
    globalThis.gc?.()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  flooded()
  const before = heldBytes()
  const all = Array.from({ length: 40 }, flooded)
  const bytes = (heldBytes() - before) / all.length
  expect(bytes).toBeLessThan(65_536)
  expect(bytes).toBeGreaterThan(80 * 512)
})

/** What must be hot to one who only listened; each key by turns becomes hot and cools. */
function replay(changes: readonly HotKeyChange[]): Set<string> {
  const hot = new Set<string>()
  for (const change of changes) {
    expect(hot.has(change.key)).toBe(!change.hot)
    if (change.hot) hot.add(change.key)
    else hot.delete(change.key)
  }
  return hot
}
