import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { CommitVerdict } from '../../src/store/index.ts'
import { VERDICT } from '../../src/store/sqlite/protocol.ts'
import { orderWrite } from '../support/order-write.ts'
import { promisesSettled } from '../support/virtual-clock.ts'
import { CommitsBench, orderIdsOf } from './commits-bench.ts'

/**
 * Random interleavings of callers, writer, clock and crashes, held against the sentences of the port: what the
 * caller hears is true, each hears it once and in time, who must act on durable writes hears of those and no other,
 * and nothing stays behind.
 */
const GRACE_MS = 25

interface Caller {
  readonly id: string
  readonly controller: AbortController
  abortedAtMs?: number
  verdict?: CommitVerdict['kind']
  settledAtMs?: number
  /** How often its hook ran. */
  durable: number
}

/** What the writer knows of a write, beside what the event loop believes. */
type Fate = 'claimed' | 'created' | 'taken' | 'outdated' | 'failed' | 'lost'

class World {
  readonly bench: CommitsBench
  readonly callers: Caller[] = []
  readonly fates = new Map<string, Fate>()
  readonly ordered: string[] = []
  #claimed: boolean[] | undefined

  constructor(bench: CommitsBench) {
    this.bench = bench
  }

  commit(): void {
    const write = orderWrite()
    const controller = new AbortController()
    const caller: Caller = { id: write.order.id, controller, durable: 0 }
    const throws = this.callers.push(caller) % 5 === 0
    const onDurable = () => {
      caller.durable++
      if (throws) throw new Error('a hook that fails')
    }
    void this.bench.commits.commit(write, controller.signal, onDurable).then(verdict => {
      expect(caller.verdict).toBeUndefined()
      if (verdict.kind === 'created') expect(caller.durable).toBe(1)
      caller.verdict = verdict.kind
      caller.settledAtMs = this.bench.clock.nowMs()
    })
  }

  abort(pick: number): void {
    const open = this.callers.filter(({ abortedAtMs }) => abortedAtMs === undefined)
    const caller = open[pick % Math.max(1, open.length)]
    if (!caller) return
    caller.abortedAtMs = this.bench.clock.nowMs()
    caller.controller.abort()
  }

  /** The writer gets the lock. */
  claim(): void {
    const ids = this.#batchIds()
    if (!ids || this.#claimed) return
    this.#claimed = this.bench.claim(ids.length)
    for (const [place, id] of ids.entries()) if (this.#claimed[place]) this.fates.set(id, 'claimed')
  }

  /** The transaction ends: what was claimed gets one fate or another. */
  answer(choices: readonly Fate[]): void {
    this.claim()
    const ids = this.#batchIds()
    if (!ids) return
    const values: (string | number)[] = []
    for (const [place, id] of ids.entries()) {
      const fate = choices[place % choices.length] ?? 'created'
      if (!this.#claimed?.[place]) values.push(VERDICT.passedOver)
      else {
        this.fates.set(id, fate)
        if (fate === 'created') values.push(VERDICT.created)
        if (fate === 'taken') values.push(VERDICT.taken, 'print', 201, `/v1/orders/${id}`, 1, '{}')
        if (fate === 'outdated') values.push(VERDICT.outdated)
        if (fate === 'failed') values.push(VERDICT.unavailable)
      }
    }
    this.#claimed = undefined
    this.ordered.push(...ids)
    this.bench.threads.answer(values)
  }

  /** Another process holds the lock until the busy timeout is over: nothing was claimed. */
  locked(): void {
    const ids = this.#batchIds()
    if (!ids || this.#claimed) return
    this.ordered.push(...ids)
    this.bench.threads.answer(
      ids.map(() => VERDICT.unavailable),
      { fault: 'locked', reason: 'SQLITE_BUSY' },
    )
  }

  crash(committedFirst: boolean): void {
    if (!this.bench.threads.runs) return
    for (const [place, id] of (this.#batchIds() ?? []).entries()) {
      if (this.#claimed?.[place]) this.fates.set(id, committedFirst ? 'created' : 'lost')
    }
    this.#claimed = undefined
    this.bench.threads.exit()
  }

  ready(): void {
    if (this.bench.threads.runs && this.bench.commits.thread.fault === 'down') {
      this.bench.threads.say({ kind: 'ready' })
    }
  }

  /** Holds after every step. */
  check(): void {
    const nowMs = this.bench.clock.nowMs()
    expect(this.bench.threads.requests.length).toBeLessThanOrEqual(1)
    for (const { id, verdict, abortedAtMs, settledAtMs, durable } of this.callers) {
      const fate = this.fates.get(id)
      expect(durable).toBe(fate === 'created' || fate === 'lost' ? 1 : 0)
      const told = `${verdict} of ${fate}`
      if (verdict === 'created') expect(told).toBe('created of created')
      if (verdict === 'taken') expect(told).toBe('taken of taken')
      if (verdict === 'outdated') expect(told).toBe('outdated of outdated')
      if (verdict === 'withdrawn') expect(told).toBe('withdrawn of undefined')
      if (verdict === 'unknown') expect(fate).toBeDefined()
      if (verdict === 'unavailable')
        expect(['unavailable of undefined', 'unavailable of failed']).toContain(told)
      if (verdict === undefined && abortedAtMs !== undefined) {
        expect(nowMs - abortedAtMs).toBeLessThan(GRACE_MS)
        expect(fate).toBe('claimed')
      }
      if (settledAtMs !== undefined && abortedAtMs !== undefined) {
        expect(settledAtMs - abortedAtMs).toBeLessThanOrEqual(GRACE_MS)
      }
    }
  }

  #batchIds(): string[] | undefined {
    const { batch } = this.bench.threads
    return batch && orderIdsOf(batch)
  }
}

const fate = fc.constantFrom<Fate>('created', 'taken', 'outdated', 'failed')
const step: fc.Arbitrary<(world: World) => void | Promise<void>> = fc.oneof(
  { weight: 8, arbitrary: fc.constant((world: World) => world.commit()) },
  { weight: 4, arbitrary: fc.nat().map(pick => (world: World) => world.abort(pick)) },
  { weight: 4, arbitrary: fc.constant((world: World) => world.bench.clock.turn()) },
  { weight: 3, arbitrary: fc.constant((world: World) => world.claim()) },
  {
    weight: 3,
    arbitrary: fc
      .array(fate, { minLength: 1, maxLength: 4 })
      .map(fates => (world: World) => world.answer(fates)),
  },
  { weight: 1, arbitrary: fc.constant((world: World) => world.locked()) },
  { weight: 1, arbitrary: fc.boolean().map(committed => (world: World) => world.crash(committed)) },
  // Rare by chance alone: claimed, abandoned by everybody, and over its grace.
  {
    weight: 1,
    arbitrary: fc.constant(async (world: World) => {
      world.claim()
      for (const _ of world.callers) world.abort(0)
      await world.bench.clock.advanceAsync(GRACE_MS)
    }),
  },
  { weight: 4, arbitrary: fc.constant((world: World) => world.ready()) },
  {
    weight: 3,
    arbitrary: fc
      .integer({ min: 1, max: 60 })
      .map(ms => (world: World) => world.bench.clock.advanceAsync(ms)),
  },
)

it('tells each caller the truth, once and in time, whatever the interleaving', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 20, maxLength: 120, size: 'max' }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 8 }),
      async (steps, maxBatch, maxPending) => {
        const bench = await CommitsBench.opened({ maxBatch, maxPending, settleGraceMs: GRACE_MS })
        const world = new World(bench)
        for (const take of steps) {
          await take(world)
          await promisesSettled()
          world.check()
        }

        const closed = bench.commits.thread.close()
        for (let rounds = 0; rounds < 20; rounds++) {
          world.ready()
          world.answer(['created'])
          if (bench.threads.requests[0] === 'close') bench.threads.exit()
        }
        await closed
        await promisesSettled()
        world.check()
        expect(world.callers.filter(({ verdict }) => verdict === undefined)).toEqual([])
        expect(
          world.callers.flatMap(({ controller }) => getEventListeners(controller.signal, 'abort')),
        ).toEqual([])
        expect(bench.clock.pendingTimers).toBe(0)
        // First come, first sent.
        const asked = world.callers.map(({ id }) => id).filter(id => world.ordered.includes(id))
        expect(world.ordered).toEqual(asked)
        // Each verdict that nobody waited for was reported, and no other.
        const unheard = world.callers.filter(
          ({ id, verdict }) => verdict === 'unknown' && world.ordered.includes(id),
        )
        expect(bench.late).toHaveLength(unheard.length)
        for (const { verdict } of world.callers) seen.add(String(verdict))
        for (const kind of bench.late) seen.add(`late ${kind}`)
      },
    ),
    { numRuns: 150 },
  )
  // The walk went everywhere, or it proves nothing.
  expect([...seen].sort()).toEqual([
    'created',
    'late created',
    'late outdated',
    'late taken',
    'late unavailable',
    'outdated',
    'taken',
    'unavailable',
    'unknown',
    'withdrawn',
  ])
}, 60_000)
