import { expect, test } from 'vitest'
import { OutboxGauge } from '../../src/outbox/index.ts'
import type { Backlog, Lookup } from '../../src/store/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'
import { FakeOutbox } from './fake-outbox.ts'

function gauged() {
  const clock = new VirtualClock()
  const outbox = new FakeOutbox()
  const answer: { now: Lookup<Backlog> | Error | 'hang' } = { now: { kind: 'unavailable' } }
  let measured = 0
  outbox.measure = signal => {
    measured++
    const { now } = answer
    if (now === 'hang') {
      return new Promise(resolve => {
        signal.addEventListener('abort', () => resolve({ kind: 'withdrawn' }), { once: true })
      })
    }
    return now instanceof Error ? Promise.reject(now) : Promise.resolve(now)
  }
  const faults: unknown[] = []
  const gauge = new OutboxGauge({
    outbox,
    options: { degradedAfterSeconds: 60 },
    clock,
    onFault: error => faults.push(error),
  })
  const found = (value: Backlog): Lookup<Backlog> => ({ kind: 'found', value })
  return { clock, gauge, answer, faults, found, measured: () => measured }
}

const EMPTY: Backlog = { pending: 0, dead: 0, oldestAtMs: undefined }

test('knows of nothing before it has measured', () => {
  const { gauge } = gauged()
  expect(gauge.backlog).toEqual(EMPTY)
  expect(gauge.oldestAgeSeconds).toBe(0)
  expect(gauge.degraded()).toBeUndefined()
})

test('measures once a second, and lets the oldest grow older in between', async () => {
  const { clock, gauge, answer, found, measured } = gauged()
  const backlog = { pending: 3, dead: 1, oldestAtMs: clock.wallMs() - 4_000 }
  answer.now = found(backlog)
  gauge.start()
  await clock.advanceAsync(1_000)
  expect(gauge.backlog).toEqual(backlog)
  expect(gauge.oldestAgeSeconds).toBe(5)
  await clock.advanceAsync(500)
  expect(gauge.oldestAgeSeconds).toBe(5.5)
  answer.now = found(EMPTY)
  await clock.advanceAsync(500)
  expect(measured()).toBe(2)
  expect(gauge.oldestAgeSeconds).toBe(0)
})

test('is degraded once the oldest is older than configured, and well again when it is gone', async () => {
  const { clock, gauge, answer, found } = gauged()
  answer.now = found({ pending: 1, dead: 0, oldestAtMs: clock.wallMs() })
  gauge.start()
  await clock.advanceAsync(60_000)
  expect(gauge.degraded()).toBeUndefined()
  await clock.advanceAsync(1)
  expect(gauge.degraded()).toBe('events wait longer than 60 s')
  answer.now = found(EMPTY)
  await clock.advanceAsync(1_000)
  expect(gauge.degraded()).toBeUndefined()
})

test('is not below zero when the wall jumps back', async () => {
  const { clock, gauge, answer, found } = gauged()
  answer.now = found({ pending: 1, dead: 0, oldestAtMs: clock.wallMs() + 3_600_000 })
  gauge.start()
  await clock.advanceAsync(1_000)
  expect(gauge.oldestAgeSeconds).toBe(0)
})

test('keeps what it knew while the store cannot say, and hands on its faults', async () => {
  const { clock, gauge, answer, found, faults } = gauged()
  const backlog = { pending: 3, dead: 0, oldestAtMs: clock.wallMs() }
  answer.now = found(backlog)
  gauge.start()
  await clock.advanceAsync(1_000)
  const fault = new Error('fault')
  for (const trouble of [{ kind: 'unavailable' } as const, fault]) {
    answer.now = trouble
    await clock.advanceAsync(1_000)
    expect(gauge.backlog).toEqual(backlog)
  }
  expect(faults).toEqual([fault])
})

test('closes while a measurement hangs, and leaves no timer', async () => {
  const { clock, gauge, answer } = gauged()
  answer.now = 'hang'
  gauge.start()
  await clock.advanceAsync(1_000)
  await gauge.close()
  expect(clock.pendingTimers).toBe(0)
})
