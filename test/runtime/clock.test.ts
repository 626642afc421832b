import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/runtime/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

describe('the clock of the process', () => {
  test('runs a timer once, clears one for good, and never goes back', async () => {
    const fired: string[] = []
    const beforeMs = systemClock.nowMs()
    const cleared = systemClock.setTimer(() => fired.push('cleared'), 1)
    systemClock.clearTimer(cleared)
    await new Promise<void>(resolve => {
      systemClock.setTimer(() => fired.push('kept'), 1)
      systemClock.setTimer(resolve, 2)
    })
    expect(fired).toEqual(['kept'])
    expect(systemClock.nowMs()).toBeGreaterThan(beforeMs)
  })

  test('runs an afterPoll callback later, never within the call', async () => {
    let ran = false
    const done = new Promise<void>(resolve => {
      systemClock.afterPoll(() => {
        ran = true
        resolve()
      })
    })
    expect(ran).toBe(false)
    await done
    expect(ran).toBe(true)
  })
})

describe('the virtual clock', () => {
  test('fires timers in order of their moments, each once, less than 2 ms early, never late', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 400 }).map(eighths => eighths / 8)),
        fc.array(fc.integer({ min: 0, max: 15 }), { minLength: 1 }),
        fc.array(fc.integer({ min: 0, max: 100 })),
        (delaysMs, early, advancesMs) => {
          let draws = 0
          const clock = new VirtualClock({ earlyMs: () => (early[draws++ % early.length] ?? 0) / 8 })
          const startMs = clock.nowMs()
          const fired: { dueMs: number; atMs: number }[] = []
          for (const delayMs of delaysMs) {
            const dueMs = startMs + Math.max(1, Math.trunc(delayMs))
            clock.setTimer(() => fired.push({ dueMs, atMs: clock.nowMs() }), delayMs)
          }
          for (const ms of advancesMs) clock.advance(ms)
          clock.advance(51)
          expect(fired).toHaveLength(delaysMs.length)
          expect(clock.pendingTimers).toBe(0)
          expect(fired.map(({ atMs }) => atMs)).toEqual(fired.map(({ atMs }) => atMs).sort((a, b) => a - b))
          for (const { dueMs, atMs } of fired) {
            expect(atMs).toBeGreaterThan(dueMs - 2)
            expect(atMs).toBeLessThanOrEqual(dueMs)
          }
        },
      ),
    )
  })

  test('a turn is timers, then poll, then afterPoll; what they set waits for the next turn', () => {
    const clock = new VirtualClock()
    const order: string[] = []
    clock.setTimer(() => {
      order.push('timer')
      clock.setTimer(() => order.push('timer of the timer'), 0)
      clock.afterPoll(() => {
        order.push('afterPoll')
        clock.afterPoll(() => order.push('afterPoll of the afterPoll'))
      })
    }, 5)
    clock.block(20)
    clock.turn(() => order.push('poll'))
    expect(order).toEqual(['timer', 'poll', 'afterPoll'])
    expect(clock.pollTimeoutMs).toBe(0)
    clock.advance(1)
    expect(order.slice(3)).toEqual(['afterPoll of the afterPoll', 'timer of the timer'])
    expect(clock.pollTimeoutMs).toBe(Number.POSITIVE_INFINITY)
  })

  test('a timer cleared by one that fires before it does not fire', () => {
    const clock = new VirtualClock()
    let fired = false
    clock.setTimer(() => clock.clearTimer(second), 5)
    const second = clock.setTimer(() => {
      fired = true
    }, 5)
    clock.block(10)
    clock.turn()
    expect(fired).toBe(false)
    expect(clock.pendingTimers).toBe(0)
  })

  test('a jump of the wall moves no timer', () => {
    const clock = new VirtualClock({ wallMs: 1_000_000 })
    let fired = false
    clock.setTimer(() => {
      fired = true
    }, 10)
    clock.setWallMs(5)
    clock.advance(9)
    expect(fired).toBe(false)
    expect(clock.wallMs()).toBe(14)
    clock.advance(1)
    expect(fired).toBe(true)
  })

  test('promises go on between the steps of advanceAsync', async () => {
    const clock = new VirtualClock()
    const atMs: number[] = []
    const wait = (ms: number) => new Promise<void>(resolve => clock.setTimer(resolve, ms))
    const walk = async () => {
      for (let step = 0; step < 3; step++) {
        await wait(10)
        atMs.push(clock.nowMs() - 1_000)
      }
    }
    const walked = walk()
    await clock.advanceAsync(30)
    await walked
    expect(atMs).toEqual([10, 20, 30])
  })
})
