import { describe, expect, test } from 'vitest'
import type { OutboxEvent } from '../../src/store/index.ts'
import { relaying } from './relaying.ts'

const LEASE_MS = 10_000

describe('when a lease is nearly over', () => {
  test('what hangs is stopped, what has not begun is handed back untried, and all of it in time', async () => {
    const { clock, outbox, begin, arrivals } = relaying({
      fate: () => 'hang',
      options: { leaseMs: LEASE_MS, maxConcurrent: 2 },
    })
    for (const subject of ['a', 'a', 'b', 'c', 'd']) outbox.add(subject)
    await begin()
    await clock.advanceAsync(0.8 * LEASE_MS - 1)
    expect(arrivals).toHaveLength(2)
    outbox.claimable = false
    await clock.advanceAsync(1)
    expect(arrivals.map(({ aborted }) => aborted)).toEqual([true, true])
    expect(outbox.settlements).toHaveLength(1)
    expect(outbox.settlements[0]).toMatchObject({ verdict: 'settled' })
    expect(outbox.rows.map(({ state, attempts }) => ({ state, attempts }))).toEqual(
      Array(5).fill({ state: 'waiting', attempts: 0 }),
    )
    expect(outbox.rows.every(({ dueAtMs }) => dueAtMs <= clock.wallMs())).toBe(true)
  })

  test('an order stops after the event in progress, and goes on under the next claim in order', async () => {
    const { clock, outbox, begin, arrived } = relaying({ latencyMs: 3_000, options: { leaseMs: LEASE_MS } })
    for (let event = 0; event < 5; event++) outbox.add('a')
    await begin()
    await clock.advanceAsync(30_000)
    // The third was stopped at 8 s, the fifth at 16 s.
    expect(arrived()).toEqual([1, 2, 3, 3, 4, 5, 5])
    expect(outbox.rows.map(({ state, attempts }) => [state, attempts])).toEqual(
      Array(5).fill(['delivered', 0]),
    )
  })

  test('the time that the claim itself took counts', async () => {
    const gate = Promise.withResolvers<void>()
    const { clock, outbox, begin, arrivals } = relaying({
      fate: () => 'hang',
      options: { leaseMs: LEASE_MS },
    })
    outbox.gate = gate.promise
    outbox.add('a')
    await begin()
    await clock.advanceAsync(5_000)
    gate.resolve()
    outbox.gate = undefined
    await clock.advanceAsync(2_999)
    expect(arrivals.map(({ aborted }) => aborted)).toEqual([false])
    await clock.advanceAsync(1)
    expect(arrivals[0]?.aborted).toBe(true)
  })

  test('a claim that comes after its time is handed back, and nothing of it begins', async () => {
    const gate = Promise.withResolvers<void>()
    const { clock, outbox, begin, arrivals } = relaying({ options: { leaseMs: LEASE_MS, maxConcurrent: 1 } })
    outbox.gate = gate.promise
    for (const subject of ['a', 'b', 'c']) outbox.add(subject)
    await begin()
    await clock.advanceAsync(2 * LEASE_MS)
    gate.resolve()
    outbox.gate = undefined
    await clock.advanceAsync(1_000)
    expect(new Set(arrivals.map(({ event }) => event.sequence))).toEqual(new Set([1, 2, 3]))
    expect(outbox.inState('delivered')).toHaveLength(3)
  })

  test('a process that slept past it changes nothing: its settlement is stale', async () => {
    const { clock, outbox, begin, arrivalsOf } = relaying({
      latencyMs: 50,
      options: { leaseMs: LEASE_MS },
    })
    const event = outbox.add('a')
    await begin()
    clock.block(LEASE_MS + 1)
    // Another relay takes it meanwhile, and has not yet ended.
    await outbox.claim({ limit: 10, leaseMs: LEASE_MS, atMs: clock.wallMs() })
    await clock.advanceAsync(100)
    expect(outbox.settlements.map(({ verdict }) => verdict)).toEqual(['stale'])
    expect(outbox.row(event)).toMatchObject({ state: 'waiting', token: 2 })
    await clock.advanceAsync(2 * LEASE_MS)
    expect(outbox.row(event).state).toBe('delivered')
    expect(arrivalsOf(event as OutboxEvent)).toHaveLength(2)
  })
})
