import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { retryDelayMs } from '../../src/outbox/backoff.ts'
import type { OutboxEvent } from '../../src/store/index.ts'
import { type Fate, relaying } from './relaying.ts'

/** Fails its first `times` deliveries. */
const failing = (subject: string, times: number) => (event: OutboxEvent, time: number) =>
  event.subject === subject && time <= times ? 'fail' : 'take'

describe('an event that fails', () => {
  test('comes before the rest of its order all the same, and other orders do not wait', async () => {
    const fate = (event: OutboxEvent, time: number) => (event.sequence === 1 && time === 1 ? 'fail' : 'take')
    const { clock, outbox, begin, arrived, arrivalsOf } = relaying({ fate })
    const [first, , second] = ['a', 'b', 'a', 'b'].map(subject => outbox.add(subject))
    const startMs = clock.nowMs()
    await begin()
    expect(arrived()).toEqual([1, 2, 4])
    await clock.advanceAsync(1_000)
    expect(arrived()).toEqual([1, 2, 4, 1, 3])
    // 500 ms, three quarters of it by the jitter, and found by a poll after that.
    const againMs = (arrivalsOf(first as OutboxEvent)[1]?.atMs ?? 0) - startMs
    expect(againMs).toBeGreaterThanOrEqual(375)
    expect(againMs).toBeLessThanOrEqual(475)
    expect(outbox.row(second as OutboxEvent)).toMatchObject({ state: 'delivered', attempts: 0 })
  })

  test('holds up what is committed to its order later, too', async () => {
    const { clock, outbox, relay, begin, arrived } = relaying({ fate: failing('a', 1) })
    outbox.add('a')
    await begin()
    outbox.add('a')
    relay.wake()
    await clock.advanceAsync(200)
    expect(arrived()).toEqual([1])
    await clock.advanceAsync(1_000)
    expect(arrived()).toEqual([1, 1, 2, 2])
  })

  test('comes back after longer and longer times, and is parked after maxAttempts', async () => {
    const { clock, outbox, channels, begin, arrivals } = relaying({
      fate: () => 'fail',
      random: () => 0,
      options: { maxAttempts: 6, retryDelayMs: 1_000, retryMaxDelayMs: 6_000 },
    })
    const reports: unknown[] = []
    channels.failed.subscribe(message => reports.push(message))
    channels.parked.subscribe(message => reports.push(message))
    const [poisoned, behind] = [outbox.add('a'), outbox.add('a')]
    await begin()
    await clock.advanceAsync(60_000)
    const gapsMs = arrivals.slice(1).map(({ atMs }, index) => atMs - (arrivals[index]?.atMs ?? 0))
    expect(gapsMs).toEqual([500, 1_000, 2_000, 3_000, 3_000])
    expect(outbox.row(poisoned)).toMatchObject({ state: 'dead', attempts: 6, reason: 'failed' })
    expect(outbox.row(behind)).toMatchObject({ state: 'dead', attempts: 0 })
    expect(reports).toEqual([
      ...Array(6).fill({ reason: 'failed' }),
      { id: poisoned.id, reason: 'failed', attempts: 6 },
      { id: behind.id, reason: 'an earlier event of its order is parked', attempts: 0 },
    ])
  })

  test('is parked at once when it is refused, with the rest of its order', async () => {
    const fate = ({ subject }: OutboxEvent) => (subject === 'a' ? 'refuse' : 'take')
    const { outbox, begin, arrived } = relaying({ fate })
    const [refused, behind, other] = ['a', 'a', 'b'].map(subject => outbox.add(subject)) as [
      OutboxEvent,
      OutboxEvent,
      OutboxEvent,
    ]
    await begin()
    expect(arrived()).toEqual([1, 3])
    expect(outbox.row(refused)).toMatchObject({ state: 'dead', attempts: 1, reason: 'refused' })
    expect(outbox.row(behind)).toMatchObject({ state: 'dead', attempts: 0 })
    expect(outbox.row(other)).toMatchObject({ state: 'delivered' })
  })

  test('waits as long as the consumer asks, an hour at most', async () => {
    for (const [askedMs, waitedMs] of [
      [20_000, 20_000],
      [Number.POSITIVE_INFINITY, 3_600_000],
    ] as const) {
      const { clock, outbox, begin } = relaying({ fate: failing('a', 1), retryAfterMs: askedMs })
      const event = outbox.add('a')
      await begin()
      expect(outbox.row(event).dueAtMs - clock.wallMs()).toBe(waitedMs)
    }
  })

  test('in a batch of them does not keep a good one behind it waiting for more than two poll intervals', async () => {
    const fate = ({ subject }: OutboxEvent): Fate => (subject === 'good' ? 'take' : 'fail')
    for (const latencyMs of [0, 1, 20]) {
      const { clock, outbox, begin, addMany, options } = relaying({ fate, latencyMs })
      addMany(options.batchSize, 'poisoned')
      const good = outbox.add('good')
      await begin()
      await clock.advanceAsync(2 * options.pollIntervalMs)
      expect(outbox.row(good).state, `${latencyMs} ms`).toBe('delivered')
    }
  })

  test('by never ending, in claim after claim, does not hold up other orders', async () => {
    const fate = ({ subject }: OutboxEvent): Fate => (subject.startsWith('hung') ? 'hang' : 'take')
    const { clock, begin, addMany, outbox, relay, arrivalsOf, load } = relaying({
      fate,
      options: { batchSize: 20 },
    })
    await begin()
    for (let round = 0; round < 20; round++) {
      outbox.add(`hung-${round}`)
      const good = addMany(19, `good-${round}`)
      relay.wake()
      await clock.advanceAsync(10)
      expect(good.map(event => arrivalsOf(event).length)).toEqual(Array(19).fill(1))
    }
    expect(load.now).toBe(20)
  })

  test('by never ending keeps a claim open, and no more than two batches are unfinished', async () => {
    const { clock, begin, addMany, load } = relaying({
      fate: () => 'hang',
      options: { batchSize: 20, maxConcurrent: 1_000 },
    })
    addMany(1_000)
    await begin()
    await clock.advanceAsync(1_000)
    expect(load.now).toBe(40)
  })
})

describe('the delay before the next attempt', () => {
  const options = { retryDelayMs: 500, retryMaxDelayMs: 60_000 }

  test('lies in the upper half of an exponential one, and under its bound', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempts, random) => {
          const fullMs = Math.min(60_000, 500 * 2 ** (attempts - 1))
          const delayMs = retryDelayMs(options, attempts, 0, () => random)
          expect(delayMs).toBeGreaterThanOrEqual(fullMs / 2)
          expect(delayMs).toBeLessThanOrEqual(fullMs)
        },
      ),
    )
  })

  test('is spread over that half', () => {
    expect([0, 0.5, 0.999].map(random => retryDelayMs(options, 3, 0, () => random))).toEqual([
      1_000, 1_500, 1_999,
    ])
  })

  test('is never less than asked, nor more for having been asked less', () => {
    expect(retryDelayMs(options, 1, 7_000, () => 0)).toBe(7_000)
    expect(retryDelayMs(options, 1, 7, () => 0)).toBe(250)
  })
})

describe('what hangs', () => {
  test('again and again leaves half of the places to what is new', async () => {
    const { clock, outbox, begin } = relaying({
      fate: ({ subject }) => (subject.startsWith('bad') ? 'hang' : 'take'),
      options: { maxConcurrent: 4, leaseMs: 5_000, maxAttempts: 1_000 },
    })
    for (let n = 0; n < 40; n++) {
      // As after a time-out: they have been tried before.
      const event = outbox.add(`bad-${n}`)
      outbox.row(event).attempts = 1
    }
    await begin()
    const agesMs: number[] = []
    for (let n = 0; n < 50; n++) {
      const event = outbox.add(`good-${n}`, clock.wallMs())
      const startMs = clock.nowMs()
      while (outbox.row(event).state !== 'delivered' && clock.nowMs() - startMs < 5_000) {
        await clock.advanceAsync(10)
      }
      agesMs.push(clock.nowMs() - startMs)
    }
    expect(Math.max(...agesMs)).toBeLessThanOrEqual(600)
  })

  test('lets go of that as soon as the store can', async () => {
    const { clock, outbox, begin } = relaying({
      fate: ({ subject }) => (subject === 'bad' ? 'hang' : 'take'),
    })
    outbox.add('bad')
    const good = outbox.add('good')
    await begin()
    outbox.settleable = false
    await clock.advanceAsync(500)
    outbox.settleable = true
    await clock.advanceAsync(200)
    expect(outbox.row(good).state).toBe('delivered')
  })

  test('lets go of what came through beside it, before it ends itself', async () => {
    const { clock, outbox, begin } = relaying({
      fate: ({ subject }) => (subject === 'bad' ? 'hang' : 'take'),
    })
    const [bad, good] = [outbox.add('bad'), outbox.add('good')]
    await begin()
    expect(outbox.settlements).toEqual([])
    await clock.advanceAsync(200)
    expect(outbox.settlements).toMatchObject([{ exceptions: [], keeps: [bad.sequence], verdict: 'settled' }])
    expect(outbox.row(good).state).toBe('delivered')
    // Once is enough, until something more has come through.
    await clock.advanceAsync(2_000)
    expect(outbox.settlements).toHaveLength(1)
  })
})
