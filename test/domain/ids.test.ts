import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { isId, newId } from '../../src/domain/index.ts'

afterEach(() => {
  vi.useRealTimers()
})

const momentOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

describe('an id', () => {
  test('is a UUID of version 7 that carries the moment at which it was made', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2031, 4, 5, 6, 7, 8, 9) })
    const id = newId()
    // RFC 9562, section 5.7: version 7 and variant 10.
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(momentOf(id)).toBe(Date.UTC(2031, 4, 5, 6, 7, 8, 9))
  })

  test('comes after every id made before it, as text, also within a millisecond', () => {
    const ids = Array.from({ length: 10_000 }, newId)
    expect(ids).toEqual([...ids].sort())
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('comes after every id made before it, though the wall clock jumps back', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const ids: string[] = []
    for (const moment of [Date.UTC(2040, 0, 1), Date.UTC(2040, 0, 1) - 60_000, Date.UTC(2040, 0, 2)]) {
      vi.setSystemTime(moment)
      ids.push(newId(), newId())
    }
    expect(ids).toEqual([...ids].sort())
  })
})

describe('isId', () => {
  test('knows our own', () => {
    for (let made = 0; made < 100; made++) expect(isId(newId())).toBe(true)
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
