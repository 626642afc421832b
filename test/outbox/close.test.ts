import { describe, expect, test } from 'vitest'
import type { OutboxEvent } from '../../src/store/index.ts'
import { relaying } from './relaying.ts'

const CLOSE_MS = 2_000
const CLOSE_LIMIT_MS = 3_000

describe('closing', () => {
  test('before it has started ends at once, and it never starts', async () => {
    const { clock, closedAfterMs, begin, outbox } = relaying()
    expect(await closedAfterMs()).toBe(0)
    await begin()
    await clock.advanceAsync(1_000)
    expect(outbox.claims).toEqual([])
    expect(clock.pendingTimers).toBe(0)
  })

  test('at rest ends at once, and no commit wakes it any more', async () => {
    const { clock, begin, closedAfterMs, outbox, relay } = relaying()
    await begin()
    relay.wake()
    expect(await closedAfterMs()).toBe(0)
    outbox.add('a')
    relay.wake()
    await clock.advanceAsync(1_000)
    expect(outbox.claims).toHaveLength(1)
    expect(clock.pendingTimers).toBe(0)
  })

  test('while it claims hands back what the claim brings', async () => {
    const gate = Promise.withResolvers<void>()
    const { clock, begin, outbox, relay, arrivals } = relaying()
    outbox.gate = gate.promise
    const event = outbox.add('a')
    await begin()
    let closed = false
    void relay.close().then(() => {
      closed = true
    })
    await clock.advanceAsync(10)
    expect(closed).toBe(false)
    gate.resolve()
    await clock.advanceAsync(0)
    expect(closed).toBe(true)
    expect(arrivals).toEqual([])
    expect(outbox.row(event)).toMatchObject({ state: 'waiting', token: 0, attempts: 0 })
    expect(clock.pendingTimers).toBe(0)
  })

  test('while it delivers hands back what has not begun, and waits for what has', async () => {
    const { begin, outbox, closedAfterMs, arrived, clock } = relaying({
      latencyMs: 500,
      options: { maxConcurrent: 1 },
    })
    for (const subject of ['a', 'a', 'b', 'c']) outbox.add(subject)
    await begin()
    expect(await closedAfterMs()).toBe(500)
    expect(arrived()).toEqual([1])
    expect(outbox.rows.map(({ state, attempts, token }) => [state, attempts, token])).toEqual([
      ['delivered', 0, 0],
      ['waiting', 0, 0],
      ['waiting', 0, 0],
      ['waiting', 0, 0],
    ])
    expect(clock.pendingTimers).toBe(0)
  })

  test('settles at once a claim of which nothing is in progress', async () => {
    const { clock, begin, outbox, relay } = relaying({
      fate: () => 'hang',
      options: { maxConcurrent: 4, batchSize: 4 },
    })
    for (let order = 0; order < 8; order++) outbox.add(`order-${order}`)
    await begin()
    await clock.advanceAsync(10)
    expect(outbox.claimed).toBe(8)
    void relay.close()
    await clock.advanceAsync(0)
    // The claim that hangs is still held.
    expect(outbox.claimed).toBe(4)
    await clock.advanceAsync(CLOSE_MS)
    expect(outbox.claimed).toBe(0)
  })

  test('stops what hangs after 2 s, and hands it back untried', async () => {
    const { begin, outbox, closedAfterMs, arrivals, clock } = relaying({ fate: () => 'hang' })
    const event = outbox.add('a')
    await begin()
    expect(await closedAfterMs()).toBe(CLOSE_MS)
    expect(arrivals[0]?.aborted).toBe(true)
    expect(outbox.row(event)).toMatchObject({ state: 'waiting', token: 0, attempts: 0 })
    expect(clock.pendingTimers).toBe(0)
  })

  test('waits 3 s for a store that cannot settle, however long the poll interval', async () => {
    const { clock, begin, outbox, closedAfterMs } = relaying({ options: { pollIntervalMs: 60_000 } })
    outbox.settleable = false
    outbox.add('a')
    await begin()
    expect(outbox.settlements).toHaveLength(1)
    expect(await closedAfterMs()).toBe(CLOSE_LIMIT_MS)
    expect(clock.pendingTimers).toBe(0)
  })

  test('settles as soon as the store can', async () => {
    const { clock, begin, outbox, relay } = relaying({ fate: () => 'hang' })
    outbox.settleable = false
    const event = outbox.add('a')
    await begin()
    let closed = false
    void relay.close().then(() => {
      closed = true
    })
    await clock.advanceAsync(CLOSE_MS + 400)
    expect(outbox.claimed).toBe(1)
    outbox.settleable = true
    await clock.advanceAsync(50)
    expect(closed).toBe(true)
    expect(outbox.row(event)).toMatchObject({ state: 'waiting', token: 0, attempts: 0 })
    expect(clock.pendingTimers).toBe(0)
  })

  test('does not wait longer for a store that does not answer at all', async () => {
    const { begin, outbox, closedAfterMs } = relaying()
    outbox.gate = new Promise(() => {})
    await begin()
    expect(await closedAfterMs()).toBe(CLOSE_LIMIT_MS)
  })

  test('twice is closing once', async () => {
    const { clock, begin, outbox, relay } = relaying({ latencyMs: 100 })
    outbox.add('a')
    await begin()
    const closings = [relay.close(), relay.close()]
    await clock.advanceAsync(100)
    await Promise.all([...closings, relay.close()])
    expect(outbox.settlements).toHaveLength(1)
    expect(clock.pendingTimers).toBe(0)
  })

  test('judges as ever what ends before it is stopped', async () => {
    const fate = ({ sequence }: OutboxEvent) => (sequence === 1 ? 'refuse' : 'fail')
    const { begin, outbox, closedAfterMs } = relaying({ fate, latencyMs: 100 })
    const [refused, failed] = [outbox.add('a'), outbox.add('b')]
    await begin()
    expect(await closedAfterMs()).toBe(100)
    expect(outbox.row(refused).state).toBe('dead')
    expect(outbox.row(failed)).toMatchObject({ state: 'waiting', attempts: 1 })
  })
})
