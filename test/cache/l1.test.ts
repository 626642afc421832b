import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { L1 } from '../../src/cache/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const MAX_BYTES = 65_536

function l1(ttlMs = 20_000) {
  const clock = new VirtualClock()
  return { clock, cache: new L1<string | number>({ ttlMs, maxBytes: MAX_BYTES }, clock) }
}

/** Bytes of the text of what can still be read. */
function heldBytes(cache: L1<string | number>, keys: Iterable<string>): number {
  let bytes = 0
  for (const key of keys) {
    const value = cache.get(key)
    if (value !== undefined) bytes += 2 * (key.length + String(value).length)
  }
  return bytes
}

describe('the first tier', () => {
  test('gives back the last value set, for at most ttlMs on the monotonic clock', () => {
    const { clock, cache } = l1(20_000)
    cache.set('price', 1)
    clock.advance(10_000)
    cache.set('price', 2)
    clock.advance(19_999)
    expect(cache.get('price')).toBe(2)
    clock.advance(2)
    expect(cache.get('price')).toBeUndefined()
  })

  test('is not kept fresh by being read', () => {
    const { clock, cache } = l1(20_000)
    cache.set('price', 1)
    for (let reads = 0; reads < 21; reads++) {
      cache.get('price')
      clock.advance(1_000)
    }
    expect(cache.get('price')).toBeUndefined()
  })

  test('does not care where the wall clock goes', () => {
    const { clock, cache } = l1(20_000)
    cache.set('price', 1)
    clock.setWallMs(clock.wallMs() + 1e12)
    expect(cache.get('price')).toBe(1)
    clock.setWallMs(0)
    clock.advance(20_001)
    expect(cache.get('price')).toBeUndefined()
  })

  test('holds no more than maxBytes, whatever is put into it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ maxLength: 2_000 }), fc.nat({ max: 20_000 })), { maxLength: 60 }),
        entries => {
          const { cache } = l1()
          const keys = new Set<string>()
          for (const [key, length] of entries) {
            keys.add(key)
            cache.set(key, 'v'.repeat(length))
          }
          expect(heldBytes(cache, keys)).toBeLessThanOrEqual(MAX_BYTES)
        },
      ),
    )
  })

  test('counts small entries at more than their text, so that a flood of them is bounded too', () => {
    const { cache } = l1()
    const keys = Array.from({ length: 10_000 }, (_, index) => `k${index}`)
    for (const key of keys) cache.set(key, 1)
    const held = keys.filter(key => cache.get(key) !== undefined)
    expect(held.length).toBeLessThan(MAX_BYTES / 100)
    // The least recently used leave first.
    expect(held).toEqual(keys.slice(-held.length))
  })

  test('does not store what is larger than itself, and keeps no older value in its place', () => {
    const { cache } = l1()
    cache.set('a', 1)
    cache.set('b', 2)
    cache.set('a', 'v'.repeat(MAX_BYTES))
    expect(cache.get('a')).toBeUndefined()
    expect(cache.get('b')).toBe(2)
  })

  test('takes any text for a key like any other', () => {
    const { cache } = l1()
    const keys = [
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
      '',
      '\0',
      '\ud800',
      'é',
      'e\u0301',
    ]
    for (const key of keys) expect(cache.get(key)).toBeUndefined()
    for (const [index, key] of keys.entries()) cache.set(key, index)
    for (const [index, key] of keys.entries()) expect(cache.get(key)).toBe(index)
  })

  test('deletes one value, and what was never there', () => {
    const { cache } = l1()
    cache.set('price', 1)
    cache.set('other', 2)
    cache.delete('price')
    cache.delete('never')
    expect(cache.get('price')).toBeUndefined()
    expect(cache.get('other')).toBe(2)
  })

  test('keeps a zero and an empty text', () => {
    const { cache } = l1()
    cache.set('free', 0)
    cache.set('empty', '')
    expect(cache.get('free')).toBe(0)
    expect(cache.get('empty')).toBe('')
  })
})
