import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LONGEST_WAIT_MS, SET_BACK_MS } from '../../src/store/index.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'
import { type Fate, OutboxWorld } from './outbox-world.ts'

/**
 * Random walks of writers, relays that finish, fail, sleep past their lease or wake up too late, operators, purges and
 * restarts, over the embedded store and the model at once.
 */
type Step = (world: OutboxWorld) => Promise<unknown>

const fate: fc.Arbitrary<Fate> = fc.record({
  kind: fc.constantFrom('delivered', 'delivered', 'delivered', 'retried', 'retried', 'dead', 'kept'),
  delayMs: fc.integer({ min: 0, max: 400 }),
})
const steps: readonly (readonly [weight: number, fc.Arbitrary<Step>])[] = [
  [6, fc.constant(world => world.create())],
  [5, fc.nat().map(pick => world => world.cancel(pick))],
  [
    8,
    fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 600 })).map(
      ([limit, leaseMs]) =>
        world =>
          world.claim(limit, leaseMs),
    ),
  ],
  [
    6,
    fc.tuple(fc.nat(), fc.array(fate, { minLength: 1, maxLength: 6 })).map(
      ([pick, fates]) =>
        world =>
          world.settle(pick, fates),
    ),
  ],
  [2, fc.nat().map(pick => world => world.settleStale(pick))],
  [
    5,
    fc.integer({ min: 1, max: 400 }).map(ms => async world => {
      world.nowMs += ms
    }),
  ],
  [
    2,
    fc.constant(async (world: OutboxWorld) => {
      world.nowMs -= LONGEST_WAIT_MS + SET_BACK_MS
    }),
  ],
  [1, fc.boolean().map(all => world => world.redrive(all))],
  [
    2,
    fc.tuple(fc.integer({ min: -1, max: 500 }), fc.integer({ min: 1, max: 5 })).map(
      ([ageMs, limit]) =>
        world =>
          world.purge(ageMs, limit),
    ),
  ],
]
const step = fc.oneof(...steps.map(([weight, arbitrary]) => ({ weight, arbitrary })))

it('loses nothing, gives nothing twice at once, keeps the order and counts rightly, whatever happens', async () => {
  const seen = new Set<string>()
  const walk = fc.array(step, { minLength: 20, maxLength: 80, size: 'max' })
  await fc.assert(
    fc.asyncProperty(walk, fc.nat({ max: 79 }), async (walked, reopenAt) => {
      const place = new SqlitePlace()
      try {
        const world = new OutboxWorld(place, await place.open({ synchronous: 'OFF' }))
        for (const [n, take] of walked.entries()) {
          await take(world)
          await world.check()
          // Once at most: a reopen costs more than all the rest.
          if (n === reopenAt) await world.reopen()
        }
        await world.drain()
        for (const kind of world.seen) seen.add(kind)
      } finally {
        await place.dispose()
      }
    }),
    { numRuns: 30, interruptAfterTimeLimit: 100_000 },
  )
  // The walk went everywhere, or it proves nothing.
  expect([...seen].sort()).toEqual([
    'claim claimed',
    'claim nothing',
    'dead',
    'delivered',
    'follower',
    'kept',
    'lapsed',
    'lapsed by a clock set back',
    'purge',
    'redrive all',
    'redrive some',
    'retried',
    'settled',
    'settled in part',
    'stale',
  ])
}, 120_000)
