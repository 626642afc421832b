import { describe, expect, test } from 'vitest'
import { relaying } from './relaying.ts'

describe('the relay', () => {
  test('announces what waits as soon as it starts', async () => {
    const { outbox, begin, arrived } = relaying()
    outbox.add('a')
    outbox.add('b')
    await begin()
    expect(arrived()).toEqual([1, 2])
    expect(outbox.inState('delivered')).toHaveLength(2)
  })

  test('is woken by a commit within 3 ms', async () => {
    const { clock, outbox, relay, begin, arrivals } = relaying()
    await begin()
    await clock.advanceAsync(10)
    outbox.add('a')
    const committedMs = clock.nowMs()
    relay.wake()
    await clock.advanceAsync(3)
    expect(arrivals.map(({ atMs }) => atMs - committedMs)).toEqual([3])
  })

  test('claims once for all commits of those 3 ms', async () => {
    const { clock, outbox, relay, begin, arrived } = relaying()
    await begin()
    await clock.advanceAsync(10)
    const before = outbox.claims.length
    for (let commit = 0; commit < 3; commit++) {
      outbox.add(`order-${commit}`)
      relay.wake()
      await clock.advanceAsync(1)
    }
    expect(arrived()).toEqual([1, 2, 3])
    expect(outbox.claims.slice(before).filter(({ size }) => size > 0)).toHaveLength(1)
  })

  test('looks again when it was woken while it claimed', async () => {
    const { clock, outbox, relay, begin, arrived } = relaying({ options: { pollIntervalMs: 60_000 } })
    const gate = Promise.withResolvers<void>()
    await begin()
    outbox.gate = gate.promise
    relay.wake()
    await clock.advanceAsync(3)
    // The claim is under way and has seen nothing.
    outbox.add('a')
    relay.wake()
    gate.resolve()
    await clock.advanceAsync(3)
    expect(arrived()).toEqual([1])
  })

  test('finds by polling what nobody told it of', async () => {
    const { clock, outbox, begin, arrived } = relaying()
    await begin()
    outbox.add('a')
    await clock.advanceAsync(99)
    expect(arrived()).toEqual([])
    await clock.advanceAsync(1)
    expect(arrived()).toEqual([1])
  })

  test('rests at the poll interval while there is nothing', async () => {
    const { clock, outbox, begin } = relaying()
    await begin()
    await clock.advanceAsync(10_000)
    expect(outbox.claims).toHaveLength(101)
    expect(clock.pendingTimers).toBe(1)
  })

  test('hands on the events of an order one after another, those of others beside them', async () => {
    const { clock, outbox, begin, arrivals, load } = relaying({ latencyMs: 10 })
    for (const subject of ['a', 'b', 'a', 'b', 'a']) outbox.add(subject)
    const startMs = clock.nowMs()
    await begin()
    await clock.advanceAsync(100)
    expect(arrivals.map(({ event, atMs }) => [event.sequence, atMs - startMs])).toEqual([
      [1, 0],
      [2, 0],
      [3, 10],
      [4, 10],
      [5, 20],
    ])
    expect(load.most).toBe(2)
  })

  test('has at most maxConcurrent deliveries in progress', async () => {
    const { clock, begin, addMany, load, outbox } = relaying({
      latencyMs: 10,
      options: { maxConcurrent: 7 },
    })
    addMany(100)
    await begin()
    await clock.advanceAsync(1_000)
    expect(load.most).toBe(7)
    expect(outbox.inState('delivered')).toHaveLength(100)
  })

  test('claims again as soon as there is room, though each claim has an event that hangs', async () => {
    const { clock, begin, addMany, arrived } = relaying({
      latencyMs: 10,
      fate: ({ sequence }) => (sequence % 4 === 1 ? 'hang' : 'take'),
      options: { batchSize: 4, maxConcurrent: 4, pollIntervalMs: 60_000 },
    })
    addMany(12)
    await begin()
    await clock.advanceAsync(100)
    expect(arrived()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  })

  test('reports each delivery with the age of its event', async () => {
    const { clock, channels, outbox, begin } = relaying()
    const ages: number[] = []
    channels.delivered.subscribe(({ ageMs }) => ages.push(ageMs))
    outbox.add('a', clock.wallMs() - 40)
    await begin()
    expect(ages).toEqual([40])
  })

  test('keeps, while orders need the machine, to batchSize events in four times pollIntervalMs, and catches up after', async () => {
    const { clock, begin, addMany, busy, outbox } = relaying()
    addMany(2_000)
    busy.now = true
    await begin()
    await clock.advanceAsync(850)
    expect(outbox.inState('delivered')).toHaveLength(600)
    busy.now = false
    await clock.advanceAsync(420)
    expect(outbox.inState('delivered')).toHaveLength(2_000)
  })

  test('is not hurried by commits while orders need the machine', async () => {
    const { clock, begin, addMany, busy, outbox, relay } = relaying()
    addMany(2_000)
    busy.now = true
    await begin()
    for (let ms = 0; ms < 850; ms++) {
      relay.wake()
      await clock.advanceAsync(1)
    }
    expect(outbox.inState('delivered')).toHaveLength(600)
  })

  test('drains a backlog of 100,000 and never holds more than two batches', async () => {
    const { clock, begin, addMany, outbox } = relaying({ latencyMs: 1, options: { maxConcurrent: 1_000 } })
    addMany(100_000)
    await begin()
    await clock.advanceAsync(2_000)
    expect(outbox.inState('delivered')).toHaveLength(100_000)
    expect(outbox.mostClaimed).toBeLessThanOrEqual(400)
    expect(outbox.claimed).toBe(0)
    expect(clock.pendingTimers).toBe(1)
  }, 30_000)
})
