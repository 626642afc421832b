import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fraction, group, oneOf, text, wholeNumber } from '../../src/runtime/index.ts'

const doc = { is: 'What it is.', trade: 'What it trades.' }
const size = wholeNumber({ ...doc, unit: 'pieces', default: 5, min: 1, max: 1_000 })
const ratio = fraction({ ...doc, unit: 'share', default: 0.5, min: 0, max: 1 })

describe('a whole number', () => {
  test('takes every whole number within its bounds and nothing else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer({ min: -10, max: 1_010 }), fc.double(), fc.anything()), value => {
        const within = typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 1_000
        expect(size.safeParse(value).success).toBe(within || value === undefined)
      }),
      { examples: [[0], [1], [1_000], [1_001], [1.5], ['5'], [Number.NaN], [null]] },
    )
  })

  test('takes its default when it is missing', () => {
    expect(size.parse(undefined)).toBe(5)
  })
})

describe('a fraction', () => {
  test('takes every number within its bounds and nothing else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.double({ min: -0.5, max: 1.5 }), fc.anything()), value => {
        const within = typeof value === 'number' && value >= 0 && value <= 1
        expect(ratio.safeParse(value).success).toBe(within || value === undefined)
      }),
      { examples: [[0], [1], [1.0000001], [-0.0000001], ['0.5'], [Number.NaN], [Number.POSITIVE_INFINITY]] },
    )
  })
})

describe('a text', () => {
  test('keeps to its length and its pattern', () => {
    const path = text({ ...doc, default: 'data', pattern: /^[a-z]+$/, maxLength: 8 })
    expect(path.parse(undefined)).toBe('data')
    expect(path.safeParse('abcdefgh').success).toBe(true)
    for (const value of ['abcdefghi', '', 'A', 'a b', 1, null])
      expect(path.safeParse(value).success).toBe(false)
  })

  test('without a pattern takes any text up to its length', () => {
    const name = text({ ...doc, default: '', maxLength: 3 })
    expect(name.safeParse(' \n ').success).toBe(true)
    expect(name.safeParse('four').success).toBe(false)
  })
})

describe('one of several', () => {
  test('takes the choices and nothing else', () => {
    const level = oneOf(['info', 'warn'], { ...doc, default: 'info' })
    expect(level.parse(undefined)).toBe('info')
    expect(level.parse('warn')).toBe('warn')
    for (const value of ['INFO', '', 'debug', 0, null, 'toString']) {
      expect(level.safeParse(value).success).toBe(false)
    }
  })
})

describe('a group', () => {
  const options = group({ size, inner: group({ ratio }) })

  test('that is missing, wholly or in part, takes its defaults, nested groups included', () => {
    const defaults = { size: 5, inner: { ratio: 0.5 } }
    expect(options.parse(undefined)).toEqual(defaults)
    expect(options.parse({})).toEqual(defaults)
    expect(options.parse({ inner: {} })).toEqual(defaults)
    expect(options.parse({ size: 7 })).toEqual({ ...defaults, size: 7 })
  })

  test('refuses a key that it does not know, at every depth, and names the place', () => {
    const result = options.safeParse({ sise: 5, inner: { ration: 1 } })
    expect(result.error?.issues).toMatchObject([
      { code: 'unrecognized_keys', path: ['inner'], keys: ['ration'] },
      { code: 'unrecognized_keys', path: [], keys: ['sise'] },
    ])
  })

  test('lists every violation at once', () => {
    const result = options.safeParse({ size: 0, inner: { ratio: 2 } })
    expect(result.error?.issues.map(issue => issue.path)).toEqual([['size'], ['inner', 'ratio']])
  })
})

test('every option carries its documentation: what, unit, trade, and whether it is secret', () => {
  expect(size.meta()).toEqual({ ...doc, unit: 'pieces' })
  expect(ratio.meta()).toEqual({ ...doc, unit: 'share' })
  expect(text({ ...doc, secret: true, default: '', maxLength: 9 }).meta()).toEqual({ ...doc, secret: true })
  expect(oneOf(['a'], { ...doc, default: 'a' }).meta()).toEqual(doc)
})
