import { describe, expect, test } from 'vitest'
import { type Fate, relaying } from './relaying.ts'

describe('while the consumer is away', () => {
  const away = (choices: { fate: () => Fate; latencyMs?: number }) => {
    const story = relaying({ ...choices, options: { retryDelayMs: 60_000 } })
    const sinkReports: unknown[] = []
    story.channels.sink.subscribe(message => sinkReports.push(message))
    return { ...story, sinkReports }
  }

  test.each([0, 1, 30])(
    'failing after %d ms, few events are tried at each poll once the first have failed',
    async latencyMs => {
      const { clock, begin, addMany, arrivals } = away({ fate: () => 'fail', latencyMs })
      addMany(10_000)
      await begin()
      await clock.advanceAsync(500)
      const before = arrivals.length
      expect(before).toBeLessThanOrEqual(2 * 200 + 5 * 16)
      await clock.advanceAsync(2_000)
      // Two claims of 8 in each poll interval.
      expect(arrivals.length - before).toBeLessThanOrEqual((2_000 / 100) * 16)
      expect(arrivals.length - before).toBeGreaterThanOrEqual(8)
    },
  )

  test('no commit hurries the next try, not even one from before the failure', async () => {
    const { clock, begin, outbox, relay, arrivals, options } = away({ fate: () => 'fail', latencyMs: 2 })
    outbox.add('a')
    await begin()
    outbox.add('b')
    relay.wake()
    const failedMs = clock.nowMs() + 2
    for (let ms = 0; ms < 150; ms++) {
      await clock.advanceAsync(1)
      relay.wake()
    }
    expect(arrivals.map(({ event }) => event.sequence)).toEqual([1, 2])
    expect(arrivals[1]?.atMs).toBeGreaterThanOrEqual(failedMs + options.pollIntervalMs)
  })

  test('and the full pace is back with the first that are taken', async () => {
    let fate: Fate = 'fail'
    const { clock, begin, addMany, outbox, arrivals, sinkReports } = away({ fate: () => fate })
    addMany(10_000)
    await begin()
    await clock.advanceAsync(1_000)
    expect(outbox.claims.at(-1)?.limit).toBe(8)
    fate = 'take'
    const lost = arrivals.length
    await clock.advanceAsync(300)
    expect(outbox.inState('delivered')).toHaveLength(10_000 - lost)
    expect(outbox.claims.at(-1)?.limit).toBe(200)
    expect(sinkReports).toEqual([
      { failing: true, reason: 'failed' },
      { failing: false, reason: '' },
    ])
  })

  test('and hangs, what fails the deliveries is tried in small claims afterwards', async () => {
    const { clock, begin, addMany, load } = away({ fate: () => 'fail', latencyMs: 5_000 })
    addMany(10_000)
    await begin()
    await clock.advanceAsync(120_000)
    expect(load.now).toBeLessThanOrEqual(16)
  })

  test('a batchSize below a small claim is kept to', async () => {
    const { clock, begin, addMany, outbox } = relaying({ fate: () => 'fail', options: { batchSize: 3 } })
    addMany(100)
    await begin()
    await clock.advanceAsync(1_000)
    expect(new Set(outbox.claims.map(({ limit }) => limit))).toEqual(new Set([3]))
  })
})

describe('while the store is away', () => {
  test('claims are tried again at the poll interval, whatever commits there are', async () => {
    const { clock, outbox, begin, relay, arrived } = relaying()
    outbox.claimable = false
    outbox.add('a')
    await begin()
    await clock.advanceAsync(1_000)
    expect(outbox.claims).toHaveLength(11)
    outbox.claimable = true
    relay.wake()
    await clock.advanceAsync(3)
    expect(arrived()).toEqual([1])
  })

  test('a settlement is tried again until it lands, and nothing is delivered twice', async () => {
    const { clock, outbox, begin, arrived } = relaying()
    outbox.settleable = false
    outbox.add('a')
    await begin()
    await clock.advanceAsync(1_000)
    expect(outbox.settlements).toHaveLength(11)
    outbox.settleable = true
    await clock.advanceAsync(100)
    expect(outbox.inState('delivered')).toHaveLength(1)
    expect(arrived()).toEqual([1])
  })

  test('a settlement is given up with the lease, and its events come again under another token', async () => {
    const { clock, outbox, begin, arrivals, options } = relaying()
    outbox.settleable = false
    outbox.add('a')
    const startMs = clock.nowMs()
    await begin()
    await clock.advanceAsync(options.leaseMs + 200)
    expect(arrivals.map(({ atMs }) => atMs - startMs)).toEqual([0, options.leaseMs])
    outbox.settleable = true
    await clock.advanceAsync(1_000)
    expect(outbox.settlements.at(-1)).toMatchObject({ token: 2, verdict: 'settled' })
    expect(outbox.inState('delivered')).toHaveLength(1)
    expect(clock.pendingTimers).toBe(1)
  })

  test('no more than two batches are taken out of a store that settles none', async () => {
    const { clock, outbox, begin, addMany } = relaying({ options: { batchSize: 20, leaseMs: 3_600_000 } })
    outbox.settleable = false
    addMany(1_000)
    await begin()
    await clock.advanceAsync(10_000)
    expect(outbox.mostClaimed).toBe(40)
    outbox.settleable = true
    await clock.advanceAsync(1_000)
    expect(outbox.inState('delivered')).toHaveLength(1_000)
  })
})
