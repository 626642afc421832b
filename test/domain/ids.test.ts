import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isId, newId } from '../../src/domain/index.ts'

const LAST_MS = 2 ** 48 - 1
const moment = fc.integer({ min: 0, max: LAST_MS })
const random = fc.uint8Array({ minLength: 16, maxLength: 16 })
const momentOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

describe('an id', () => {
  test('is a UUID of version 7 that carries the moment at which it was made', () => {
    fc.assert(
      fc.property(moment, random, (atMs, bytes) => {
        const id = newId(atMs, bytes)
        // RFC 9562, section 5.7: version 7 and variant 10.
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(momentOf(id)).toBe(atMs)
        expect(isId(id)).toBe(true)
      }),
      {
        examples: [
          [0, new Uint8Array(16)],
          [LAST_MS, new Uint8Array(16).fill(255)],
        ],
      },
    )
  })

  test('comes, as text, after every id of an earlier millisecond, whatever their random bytes', () => {
    fc.assert(
      fc.property(moment, moment, random, random, (oneMs, otherMs, bytes, otherBytes) => {
        fc.pre(oneMs !== otherMs)
        expect(newId(oneMs, bytes) < newId(otherMs, otherBytes)).toBe(oneMs < otherMs)
      }),
      { examples: [[255, 256, new Uint8Array(16).fill(255), new Uint8Array(16)]] },
    )
  })

  test('is unlike any other of its millisecond: 73 random bits tell them apart', () => {
    const bits = Array.from({ length: 128 }, (_, bit) => {
      const bytes = new Uint8Array(16)
      bytes[bit >> 3] = 1 << (bit & 7)
      return newId(0, bytes)
    })
    expect(new Set(bits).size).toBe(73 + 1)
  })

  test('keeps nothing of the buffer that its random bytes came in', () => {
    const bytes = new Uint8Array(16).fill(7)
    const id = newId(1, bytes)
    bytes.fill(9)
    expect(newId(1, new Uint8Array(16).fill(7))).toBe(id)
    expect(bytes).toEqual(new Uint8Array(16).fill(9))
  })
})

describe('isId', () => {
  test('knows our own', () => {
    expect(isId(newId(Date.UTC(2026, 0, 1), new Uint8Array(16)))).toBe(true)
  })

  test.each([
    ['version 4', 'f47ac10b-58cc-4372-a567-0e02b2c3d479'],
    ['version 1', 'c232ab00-9414-11ec-b3c8-9f6bdeced846'],
    ['nil', '00000000-0000-0000-0000-000000000000'],
    ['max', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
    ['a wrong variant', '017f22e2-79b0-7cc3-18c4-dc0c0c07398f'],
    ['no dashes', '017f22e279b07cc398c4dc0c0c07398f'],
    ['braces', '{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}'],
    ['a URN', 'urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f'],
    ['a line break after it', '017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n'],
    ['nothing', ''],
  ])('refuses %s', (_, text) => {
    expect(isId(text)).toBe(false)
  })

  test('refuses any text that is not a UUID', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), text => {
        expect(isId(text)).toBe(false)
      }),
    )
  })
})
