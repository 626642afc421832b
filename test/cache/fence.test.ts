import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Fence } from '../../src/cache/fence.ts'

const tag = fc.constantFrom('a', 'b', 'c', 'd', '__proto__', 'constructor', 'toString')
const step = fc.oneof(
  { weight: 5, arbitrary: fc.array(tag, { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.constant('all' as const) },
)

describe('the fence', () => {
  test('never believes what started before a move, and with room for all tags doubts nothing else', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 30, size: 'max' }),
        fc.integer({ min: 1, max: 8 }),
        (steps, capacity) => {
          const fence = new Fence(capacity)
          // For each stamp handed out, what has moved since.
          const movedSince: { stamp: number; moved: Set<string>; all: boolean }[] = []
          for (const step of steps) {
            movedSince.push({ stamp: fence.now, moved: new Set(), all: false })
            if (step === 'all') fence.moveAll()
            else fence.move(step)
            for (const since of movedSince) {
              if (step === 'all') since.all = true
              else for (const tag of step) since.moved.add(tag)
            }
            for (const { stamp, moved, all } of movedSince) {
              for (const tag of ['a', 'b', 'c', 'd', '__proto__', 'constructor', 'toString']) {
                const told = fence.hasMoved([tag], stamp)
                if (all || moved.has(tag)) expect(told).toBe(true)
                else if (capacity >= 7) expect(told).toBe(false)
              }
            }
          }
        },
      ),
      { numRuns: 100 },
    )
  })

  test('counts by itself, so that a move and a start are never at the same moment', () => {
    const fence = new Fence()
    const before = fence.now
    fence.move(['a'])
    const after = fence.now
    expect(after).toBeGreaterThan(before)
    expect(fence.hasMoved(['a'], before)).toBe(true)
    expect(fence.hasMoved(['a'], after)).toBe(false)
  })

  test('asked about several tags, tells of the one that moved last', () => {
    const fence = new Fence()
    fence.move(['a'])
    fence.move(['b', 'c'])
    fence.move(['d'])
    expect(fence.lastMove(['a', 'b'])).toBe(2)
    expect(fence.lastMove(['b', 'a', 'never'])).toBe(2)
    expect(fence.lastMove(['never'])).toBe(0)
    expect(fence.lastMove([])).toBe(0)
  })

  test('forgets the tag whose last move is the longest ago, and doubts no more than that takes', () => {
    const fence = new Fence(2)
    fence.move(['a'])
    fence.move(['b'])
    fence.move(['a'])
    expect(fence.lastMove(['never'])).toBe(0)
    fence.move(['c'])
    // What is forgotten is the move of b, at 2: from there on every tag is known.
    expect([
      fence.lastMove(['a']),
      fence.lastMove(['b']),
      fence.lastMove(['c']),
      fence.lastMove(['never']),
    ]).toEqual([3, 2, 4, 2])
    expect(fence.hasMoved(['never'], 1)).toBe(true)
    expect(fence.hasMoved(['never'], 2)).toBe(false)
  })

  test('given more tags at once than it can hold, doubts everything that started before', () => {
    const fence = new Fence(2)
    fence.move(['a', 'b', 'c'])
    expect(fence.hasMoved(['a'], 0)).toBe(true)
    expect(fence.hasMoved(['never'], 0)).toBe(true)
    expect(fence.hasMoved(['a'], fence.now)).toBe(false)
  })

  test('remembers some 16,000 tags, and of any number no more', () => {
    const fence = new Fence()
    fence.move(['early'])
    for (let index = 0; index < 16_000; index++) fence.move([`tag ${index}`])
    expect(fence.lastMove(['never'])).toBe(0)
    for (let index = 0; index < 100_000; index++) fence.move([`other tag ${index}`])
    expect(fence.lastMove(['never'])).toBeGreaterThan(99_000)
    expect(fence.lastMove(['other tag 99999'])).toBe(fence.now)
  })

  test('when everything moves, has nothing that started before, and everything that starts then', () => {
    const fence = new Fence()
    fence.move(['a'])
    fence.moveAll()
    expect(fence.hasMoved(['a'], 1)).toBe(true)
    expect(fence.hasMoved(['never'], 1)).toBe(true)
    expect(fence.hasMoved([], 1)).toBe(true)
    expect(fence.hasMoved(['a', 'never'], fence.now)).toBe(false)
  })
})
