import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { OutboxEvent } from '../../src/store/index.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { FakeOutbox } from './fake-outbox.ts'
import { type Fate, relaying } from './relaying.ts'

const LEASE_MS = 1_000
const OPTIONS = {
  batchSize: 5,
  maxConcurrent: 3,
  pollIntervalMs: 50,
  leaseMs: LEASE_MS,
  maxAttempts: 4,
  retryDelayMs: 20,
  retryMaxDelayMs: 300,
}
const CLOSE_MS = 2_000

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('commit'), order: fc.nat(4), told: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('pass'), ms: fc.integer({ min: 1, max: 600 }) }) },
  // The process sleeps, for longer than a lease at times.
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('block'), ms: fc.integer({ min: 1, max: 2 * LEASE_MS }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('store'), claimable: fc.boolean(), settleable: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart') }) },
  // Another process has the same outbox, and dies with what it has claimed.
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash elsewhere') }) },
)
const fate = fc.constantFrom<Fate>('take', 'take', 'take', 'take', 'lose', 'fail', 'fail', 'hang', 'refuse')

test('whatever fails, lapses and closes: each event at least once, per order in order, none lost', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 60 }),
      fc.infiniteStream(fate),
      fc.infiniteStream(fc.integer({ min: 0, max: 120 })),
      fc.nat(2),
      async (steps, fates, latencies, earlyMs) => {
        const clock = new VirtualClock({ earlyMs: () => earlyMs })
        const outbox = new FakeOutbox()
        const taken = new Set<OutboxEvent['id']>()
        const refused = new Set<OutboxEvent['id']>()
        let healed = false
        const start = async () => {
          const story = relaying({
            clock,
            outbox,
            options: OPTIONS,
            latencyMs: latencies.next().value,
            fate: event => {
              const next = healed ? 'take' : fates.next().value
              if (next === 'refuse') refused.add(event.id)
              return next
            },
            onTaken: event => {
              const before = outbox.rows.filter(
                row => row.event.subject === event.subject && row.event.sequence < event.sequence,
              )
              for (const row of before) expect(taken).toContain(row.event.id)
              taken.add(event.id)
            },
          })
          await story.begin()
          return story
        }
        const end = async ({ relay, load }: Awaited<ReturnType<typeof start>>) => {
          let closed = false
          void relay.close().then(() => {
            closed = true
          })
          await clock.advanceAsync(CLOSE_MS)
          expect(closed).toBe(true)
          expect(load.now).toBe(0)
          expect(clock.pendingTimers).toBe(0)
        }

        let story = await start()
        for (const one of steps) {
          if ('order' in one) {
            outbox.add(`order-${one.order}`)
            if (one.told) story.relay.wake()
          } else if (one.kind === 'pass' && 'ms' in one) await clock.advanceAsync(one.ms)
          else if ('ms' in one) clock.block(one.ms)
          else if ('claimable' in one) Object.assign(outbox, one)
          else if (one.kind === 'restart') {
            await end(story)
            story = await start()
          } else await outbox.claim({ limit: 3, leaseMs: LEASE_MS, atMs: clock.wallMs() })
          await promisesSettled()
        }
        healed = true
        outbox.claimable = true
        outbox.settleable = true
        await clock.advanceAsync(20 * LEASE_MS)

        expect(outbox.inState('waiting')).toEqual([])
        for (const event of outbox.inState('delivered')) expect(taken).toContain(event.id)
        for (const { event, state, attempts } of outbox.rows) {
          if (state !== 'dead' || refused.has(event.id) || attempts >= OPTIONS.maxAttempts) continue
          const earlier = outbox.rows.some(
            other =>
              other.state === 'dead' &&
              other.event.subject === event.subject &&
              other.event.sequence < event.sequence,
          )
          expect(earlier, `event ${event.sequence} is dead for no reason`).toBe(true)
        }
        await end(story)
      },
    ),
    { numRuns: 200 },
  )
}, 60_000)
