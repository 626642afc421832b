import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fnv1a, shardOf } from '../../src/cache/shards.ts'

/** Any sequence of UTF-16 units, lone surrogates among them. */
const anyText = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd800, max: 0xdfff })), {
    maxLength: 40,
  })
  .map(units => String.fromCharCode(...units))

/** The definition, in whole numbers without a limit. */
function fnv1aByDefinition(text: string): number {
  let hash = 0x811c9dc5n
  for (const byte of new TextEncoder().encode(text.toWellFormed())) {
    hash = ((hash ^ BigInt(byte)) * 0x01000193n) % 2n ** 32n
  }
  return Number(hash)
}

describe('FNV-1a', () => {
  test.each([
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['b', 0xe70c2de5],
    ['foo', 0xa9f37ed7],
    ['foobar', 0xbf9cf968],
    ['chongo was here!\n', 0xd49930d5],
  ])('of %j is what its authors publish', (text, hash) => {
    expect(fnv1a(text)).toBe(hash)
  })

  test('is taken over the UTF-8 bytes, a lone surrogate being U+FFFD', () => {
    fc.assert(
      fc.property(anyText, text => {
        expect(fnv1a(text)).toBe(fnv1aByDefinition(text))
      }),
      { numRuns: 1_000 },
    )
    expect(fnv1a('\ud800')).toBe(fnv1a('\ufffd'))
    expect(fnv1a('\udc00\ud800')).toBe(fnv1a('\ufffd\ufffd'))
    expect(fnv1a('\ud83d\ude00')).not.toBe(fnv1a('\ufffd\ufffd'))
  })
})

describe('shards', () => {
  test('are 0…count − 1, the hash modulo the count', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (text, count) => {
        const shard = shardOf(text, count)
        expect(shard).toBe(fnv1aByDefinition(text) % count)
        expect(shard).toBeGreaterThanOrEqual(0)
        expect(shard).toBeLessThan(count)
      }),
    )
  })

  test('stay what they were: other instances, and other versions, look for copies there', () => {
    const texts = ['', 'order:v1:demo:full:1', 'order:v1:demo:full:2', '__proto__', 'é']
    expect(texts.map(text => shardOf(text, 1))).toEqual([0, 0, 0, 0, 0])
    expect(texts.map(text => shardOf(text, 3))).toEqual([1, 2, 1, 2, 0])
    expect(texts.map(text => shardOf(text, 16))).toEqual([5, 7, 10, 13, 1])
  })

  test.each([
    0,
    -0,
    -1,
    -16,
    0.5,
    2.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    2 ** 53,
  ])('a count of %s has none to choose: −1', count => {
    expect(shardOf('order:v1:demo:full:1', count)).toBe(-1)
  })

  test.each([2, 3, 7, 16, 64])('%i of them share keys evenly, within 10 %', count => {
    const keys = new Array<number>(count).fill(0)
    const each = 4_000
    for (let index = 0; index < each * count; index++) {
      const shard = shardOf(`order:v1:demo:full:${index}`, count)
      keys[shard] = (keys[shard] ?? 0) + 1
    }
    for (const held of keys) expect(Math.abs(held - each)).toBeLessThan(each / 10)
  })
})
