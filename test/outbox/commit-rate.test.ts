import { expect, test } from 'vitest'
import { CommitRate } from '../../src/outbox/commit-rate.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

test('the commit rate is that of the last 100 to 200 ms', () => {
  const clock = new VirtualClock()
  const rate = new CommitRate(clock)
  expect(rate.perSecond()).toBe(0)
  for (let ms = 0; ms < 1_000; ms += 10) {
    rate.committed(20)
    clock.advance(10)
  }
  expect(rate.perSecond()).toBeGreaterThan(1_700)
  expect(rate.perSecond()).toBeLessThan(2_300)
  clock.advance(100)
  expect(rate.perSecond()).toBeLessThan(2_300)
  clock.advance(100)
  expect(rate.perSecond()).toBe(0)
})
