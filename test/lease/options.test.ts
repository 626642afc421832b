import { expect, test } from 'vitest'
import { deadlineOptions } from '../../src/lease/options.ts'

test('the defaults are those of the contract', () => {
  expect(deadlineOptions.parse(undefined)).toEqual({
    requestBudgetMs: 200,
    settleGraceMs: 25,
    commitReserveMs: 20,
  })
})

test('every default lies within the bounds of its key', () => {
  expect(deadlineOptions.safeParse(deadlineOptions.parse(undefined)).error).toBeUndefined()
})

test.each([
  ['requestBudgetMs', 10, 60_000],
  ['settleGraceMs', 0, 5_000],
  ['commitReserveMs', 1, 10_000],
])('%s is bounded below by %i and above by %i', (key, min, max) => {
  for (const value of [min, max]) expect(deadlineOptions.safeParse({ [key]: value }).success).toBe(true)
  for (const value of [min - 1, max + 1])
    expect(deadlineOptions.safeParse({ [key]: value }).success).toBe(false)
})
