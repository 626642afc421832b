import { expect, test } from 'vitest'
import { capacityOptions } from '../../src/admission/options.ts'

test('the defaults are those of the contract', () => {
  expect(capacityOptions.parse(undefined)).toEqual({
    targetRps: 1000,
    saturatedLatencyMs: 45,
    queueSlots: 15,
    maxConcurrent: 60,
  })
})

test('every default lies within the bounds of its key', () => {
  expect(capacityOptions.safeParse(capacityOptions.parse(undefined)).error).toBeUndefined()
})

test('the default permits follow from the other defaults by L = λW', () => {
  const { targetRps, saturatedLatencyMs, queueSlots, maxConcurrent } = capacityOptions.parse(undefined)
  expect(maxConcurrent).toBe(Math.ceil((targetRps * saturatedLatencyMs) / 1000) + queueSlots)
})

test.each([
  ['targetRps', 1, 200_000],
  ['saturatedLatencyMs', 1, 60_000],
  ['queueSlots', 0, 10_000],
  ['maxConcurrent', 1, 10_000],
])('%s is bounded below by %i and above by %i', (key, min, max) => {
  for (const value of [min, max]) expect(capacityOptions.safeParse({ [key]: value }).success).toBe(true)
  for (const value of [min - 1, max + 1])
    expect(capacityOptions.safeParse({ [key]: value }).success).toBe(false)
})
