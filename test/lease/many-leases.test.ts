import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Lease } from '../../src/lease/index.ts'
import { sleep } from '../../src/runtime/index.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'

const LEASES = 10_000

const warnings: Error[] = []
const collectWarning = (warning: Error) => void warnings.push(warning)

beforeEach(() => {
  warnings.length = 0
  process.on('warning', collectWarning)
})

afterEach(() => {
  process.off('warning', collectWarning)
})

function enter(lease: Lease, floorMs: number): void {
  try {
    lease.enter('commit', floorMs)
  } catch (end) {
    expect(end).toBe(lease.ended)
  }
}

/** Every way in which a lease is used and ended; what a way leaves open, the timer or the next stage ends. */
const ways: ((lease: Lease) => void)[] = [
  () => {},
  lease => lease.close(),
  lease => lease.abandon(),
  lease => enter(lease, 0),
  lease => enter(lease, 1_000),
  lease => {
    lease.close()
    lease.abandon()
    lease.close()
  },
  lease => {
    lease.abandon()
    enter(lease, 0)
  },
]

/**
 * Opens leases and ends them all: every third with its signal read and twelve sleepers under it, every other
 * third with its signal read when all is over, every fifth without any budget left. Returns the signals.
 */
async function openAndEnd(clock: VirtualClock, count: number): Promise<AbortSignal[]> {
  const signals: AbortSignal[] = []
  for (let opened = 0; opened < count; opened += 100) {
    const leases: Lease[] = []
    const sleepers: Promise<unknown>[] = []
    for (let index = opened; index < opened + 100; index++) {
      const lease = new Lease(clock, 200, index % 5 === 0 ? 200 : index % 11, () => {})
      leases.push(lease)
      if (index % 3 === 0) {
        signals.push(lease.signal)
        for (let sleeper = 0; sleeper < 12; sleeper++) {
          sleepers.push(sleep(clock, 1 + (index % 250), lease.signal).catch(() => {}))
        }
      }
      ways[index % ways.length]?.(lease)
    }
    clock.advance(300)
    await Promise.all(sleepers)
    for (const [index, lease] of leases.entries()) {
      enter(lease, 0)
      if (index % 3 === 1) signals.push(lease.signal)
      expect(lease.state).not.toBe('open')
    }
  }
  return signals
}

test('10,000 leases ended in all ways leave no timer, no listener and no warning', async () => {
  const clock = new VirtualClock()
  const signals = await openAndEnd(clock, LEASES)
  await promisesSettled()
  expect(signals.length).toBeGreaterThan(LEASES / 4)
  expect(clock.pendingTimers).toBe(0)
  expect(signals.filter(signal => getEventListeners(signal, 'abort').length > 0)).toHaveLength(0)
  expect(warnings).toEqual([])
})

test('10,000 leases more leave the heap where it was', async () => {
  const clock = new VirtualClock()
  const heapUsed = async () => {
    await promisesSettled()
    globalThis.gc?.()
    return process.memoryUsage().heapUsed
  }
  expect(globalThis.gc).toBeTypeOf('function')
  await openAndEnd(clock, LEASES)
  const before = await heapUsed()
  await openAndEnd(clock, LEASES)
  const grownPerLease = ((await heapUsed()) - before) / LEASES
  // The smallest lease holds some 300 bytes, one with a signal over 1,000.
  expect(grownPerLease).toBeLessThan(50)
})
