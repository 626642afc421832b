import { expect, test } from 'vitest'
import { Periodic } from '../../src/runtime/index.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'

/** A step that is made every 100 ms, or 10 ms after one that says there is more. */
function periodic(step: (times: number) => Promise<boolean> | boolean) {
  const clock = new VirtualClock()
  const stepsAtMs: number[] = []
  const faults: unknown[] = []
  const startMs = clock.nowMs()
  const subject = new Periodic({
    clock,
    intervalMs: 100,
    pauseMs: 10,
    step: async () => step(stepsAtMs.push(clock.nowMs() - startMs)),
    onFault: error => faults.push(error),
  })
  return { clock, periodic: subject, stepsAtMs, faults }
}

test('makes a step after each interval, and the first after the first', async () => {
  const { clock, periodic: subject, stepsAtMs } = periodic(() => false)
  subject.start()
  await clock.advanceAsync(350)
  expect(stepsAtMs).toEqual([100, 200, 300])
})

test('goes on after the pause while there is more', async () => {
  const { clock, periodic: subject, stepsAtMs } = periodic(times => times < 3)
  subject.start()
  await clock.advanceAsync(250)
  expect(stepsAtMs).toEqual([100, 110, 120, 220])
})

test('makes one step at a time, and counts the interval from its end', async () => {
  const ending = Promise.withResolvers<boolean>()
  const { clock, periodic: subject, stepsAtMs } = periodic(() => ending.promise)
  subject.start()
  await clock.advanceAsync(1_000)
  expect(stepsAtMs).toEqual([100])
  ending.resolve(false)
  await clock.advanceAsync(100)
  expect(stepsAtMs).toEqual([100, 1_100])
})

test('hands on a fault and tries again after the interval', async () => {
  const fault = new Error('fault')
  const {
    clock,
    periodic: subject,
    stepsAtMs,
    faults,
  } = periodic(times => {
    if (times === 1) throw fault
    return false
  })
  subject.start()
  await clock.advanceAsync(200)
  expect(faults).toEqual([fault])
  expect(stepsAtMs).toEqual([100, 200])
})

test('closed at rest makes no step any more and leaves no timer', async () => {
  const { clock, periodic: subject, stepsAtMs } = periodic(() => false)
  subject.start()
  await clock.advanceAsync(150)
  await subject.close()
  expect(clock.pendingTimers).toBe(0)
  await clock.advanceAsync(1_000)
  expect(stepsAtMs).toEqual([100])
})

test('closed during a step waits for its end, and makes no other', async () => {
  const ending = Promise.withResolvers<boolean>()
  const { clock, periodic: subject, stepsAtMs } = periodic(() => ending.promise)
  subject.start()
  await clock.advanceAsync(100)
  let closed = false
  const closing = subject.close().then(() => {
    closed = true
  })
  await promisesSettled()
  expect(closed).toBe(false)
  ending.resolve(true)
  await closing
  await clock.advanceAsync(1_000)
  expect(stepsAtMs).toEqual([100])
  expect(clock.pendingTimers).toBe(0)
})

test('closed before it has started never starts', async () => {
  const { clock, periodic: subject, stepsAtMs } = periodic(() => false)
  await subject.close()
  subject.start()
  await clock.advanceAsync(1_000)
  expect(stepsAtMs).toEqual([])
})
