import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { freeze } from '../../src/cache/freeze.ts'

/** What can still be changed in `value`, by its path. */
function loose(value: unknown, path = '$'): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Object.isFrozen(value) ? [] : [path]
  return [...own, ...Object.entries(value).flatMap(([name, member]) => loose(member, `${path}.${name}`))]
}

describe('what is frozen', () => {
  test('is the same value as before, and nowhere open to change', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const before = structuredClone(value)
        const frozen = freeze(value)
        expect(frozen).toBe(value)
        expect(frozen).toEqual(before)
        expect(loose(frozen)).toEqual([])
      }),
    )
  })

  test('is so below what was frozen already', () => {
    const order = freeze(Object.freeze({ items: [{ sku: 'A' }] }))
    expect(loose(order)).toEqual([])
  })

  test('is so behind hostile names', () => {
    const value = freeze(JSON.parse('{"__proto__": {"a": []}, "constructor": {"b": {}}}'))
    expect(loose(value)).toEqual([])
    expect(Object.isFrozen(Object.prototype)).toBe(false)
  })

  test('may be nothing at all', () => {
    expect([freeze(undefined), freeze(null), freeze(0), freeze('')]).toEqual([undefined, null, 0, ''])
  })
})
