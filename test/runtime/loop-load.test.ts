import { expect, test } from 'vitest'
import { LoopLoad, systemClock } from '../../src/runtime/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

test('the load of the loop is that of the last 100 to 200 ms', () => {
  const clock = new VirtualClock()
  const loop = { idle: 0, active: 0 }
  const load = new LoopLoad(clock, () => ({ ...loop }))
  const pass = (idle: number, active: number) => {
    loop.idle += idle
    loop.active += active
    clock.advance(idle + active)
    return load.share()
  }
  expect(load.share()).toBe(0)
  expect(pass(30, 10)).toBe(0.25)
  for (let n = 0; n < 20; n++) pass(1, 9)
  expect(load.share()).toBeCloseTo(0.9)
  // What is older than 200 ms counts no more.
  for (let n = 0; n < 20; n++) pass(10, 0)
  expect(load.share()).toBe(0)
  // Asked seldom, it tells of all the time since.
  expect(pass(300, 100)).toBeCloseTo(0.24, 1)
  expect(pass(0, 400)).toBeCloseTo(1)
})

test('it reads the loop of this thread, which has rested', async () => {
  const load = new LoopLoad(systemClock)
  for (let time = 0; time < 2; time++) {
    await new Promise(resolve => setTimeout(resolve, 250))
    expect(load.share()).toBeLessThan(0.9)
  }
})
