import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { textBytes } from '../../src/cache/text-bytes.ts'

describe('the bytes of a value', () => {
  test('are those of UTF-8, not characters', () => {
    expect(textBytes('abc')).toBe(3)
    expect(textBytes('é')).toBe(2)
    expect(textBytes('€')).toBe(3)
    expect(textBytes('👍')).toBe(4)
    expect(textBytes('')).toBe(0)
  })

  test('are those of all text in it, names included, and 8 for whatever is no text', () => {
    expect(textBytes({ é: '€', n: 1 })).toBe(2 + 3 + 1 + 8)
    expect(textBytes(['ab', ['c', null], true])).toBe(2 + 1 + 8 + 8)
    expect(textBytes({ __proto__: null, constructor: 'ab' })).toBe(11 + 2)
    expect(textBytes(undefined)).toBe(8)
  })

  test('are what a walk through its JSON sees', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), value => {
        let bytes = 0
        JSON.stringify({ root: value }, function (this: object, name, member: unknown) {
          if (!Array.isArray(this)) bytes += Buffer.byteLength(name)
          if (typeof member === 'string') bytes += Buffer.byteLength(member)
          else if (typeof member !== 'object' || member === null) bytes += 8
          return member
        })
        expect(textBytes({ root: value })).toBe(bytes)
      }),
    )
  })
})
