import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { promisesSettled } from '../support/virtual-clock.ts'
import { cached, type Load, type Watched, watch } from './loads.ts'

const HUNG_UP = new Error('the client hung up')
const NO_STORE = new Error('no store')

describe('an entry', () => {
  test('of 65,536 bytes of text is kept; of one more it is handed out, and what was kept before is gone', async () => {
    const { clock, query, loads, fill } = cached({ l1Seconds: 20, refreshAheadRatio: 0.5 })
    const largest = 'é'.repeat(32_768)
    await fill('A', largest)
    expect(query.peek('A')).toEqual({ value: largest })
    await clock.advanceAsync(15_000)
    query.peek('A')
    loads[1]?.bring(`${largest}v`)
    await promisesSettled()
    expect(query.peek('A')).toBeUndefined()
    const reader = watch(query.read('A'))
    loads[2]?.bring(`${largest}v`)
    await promisesSettled()
    expect(reader.fate).toEqual({ value: `${largest}v` })
    expect(query.peek('A')).toBeUndefined()
  })

  test('too large because it was overtaken by a write leaves the fresh one alone', async () => {
    const { cache, query, loads, fill } = cached({ maxEntryBytes: 1_024 })
    void watch(query.read('A'))
    cache.invalidate(['A'])
    await fill('A', 'new')
    loads[0]?.bring('v'.repeat(2_000))
    await promisesSettled()
    expect(query.peek('A')).toEqual({ value: 'new' })
  })

  test('ends early by a share of its time that is drawn for each, and never by more than jitterRatio', async () => {
    const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    await fc.assert(
      fc.asyncProperty(draw, fc.double({ min: 0, max: 0.9, noNaN: true }), async (drawn, jitterRatio) => {
        const { clock, query, fill } = cached({ l1Seconds: 20, jitterRatio }, { random: () => drawn })
        await fill('A', 1)
        const lifeMs = 20_000 * (1 - jitterRatio * drawn)
        expect(lifeMs).toBeGreaterThanOrEqual(20_000 * (1 - jitterRatio))
        await clock.advanceAsync(lifeMs - 0.001)
        expect(query.peek('A')).toEqual({ value: 1 })
        await clock.advanceAsync(0.002)
        expect(query.peek('A')).toBeUndefined()
      }),
    )
  })

  test('that says that there is no such thing ends early in the same way', async () => {
    const { clock, query, fill } = cached({ negativeSeconds: 2, jitterRatio: 0.5 }, { random: () => 0.5 })
    await fill('A', undefined)
    await clock.advanceAsync(1_500)
    expect(query.peek('A')).toEqual({ value: undefined })
    await clock.advanceAsync(0.001)
    expect(query.peek('A')).toBeUndefined()
  })
})

describe('all entries', () => {
  test('of all kinds together take no more than maxBytes; what was used last stays', async () => {
    const { cache, query, fill } = cached({ maxBytes: 65_536 })
    const other = cache.query<string, string>({
      keyOf: asked => `other:${asked}`,
      tagsOf: () => [],
      load: async () => [{ value: 'w'.repeat(1_000) }],
    })
    const names = Array.from({ length: 100 }, (_, index) => `${index}`)
    for (const name of names) {
      await fill(name, 'v'.repeat(1_000))
      await other.read(name)
      query.peek('0')
    }
    const held = names.filter(name => query.peek(name))
    const othersHeld = names.filter(name => other.peek(name))
    expect((held.length + othersHeld.length) * 1_000).toBeLessThanOrEqual(65_536)
    expect(held.length).toBeGreaterThan(10)
    expect(held[0]).toBe('0')
    expect(othersHeld).toEqual(names.slice(-othersHeld.length))
  })
})

describe('of three cold keys with room for two loads', () => {
  test('the third is refused at once, which is counted, while who joins the two is not', async () => {
    const { query, loads, tally } = cached({ maxConcurrentLoads: 2 })
    const readers = ['A', 'B', 'C', 'A', 'B'].map(asked => watch(query.read(asked)))
    await promisesSettled()
    const refused = { threw: expect.objectContaining({ name: 'CacheFailure', kind: 'refused' }) }
    expect(readers.map(({ fate }) => fate)).toEqual(['open', 'open', refused, 'open', 'open'])
    expect(tally).toMatchObject({ inFlight: 2, loads: { ok: 0, failed: 0, timeout: 0, refused: 1 } })
    loads[0]?.bring(1)
    await promisesSettled()
    const again = watch(query.read('C'))
    loads[2]?.bring(3)
    await promisesSettled()
    expect(again.fate).toEqual({ value: 3 })
  })
})

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('read' as const), key: fc.constantFrom('A', 'B', 'C', 'D') }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(),
      how: fc.constantFrom('value' as const, 'nothing' as const, 'passing' as const, 'failure' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('hang-up' as const), which: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('write' as const), key: fc.constantFrom('A', 'B', 'C', 'D') }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 60 }) }),
  },
)

function end(load: Load, how: 'value' | 'nothing' | 'passing' | 'failure'): void {
  if (how === 'failure') load.fail(NO_STORE)
  else if (how === 'passing') load.pass(1)
  else load.bring(how === 'value' ? 1 : undefined)
}

test('in whatever order things happen, loads stay within their bound and what is counted adds up', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async steps => {
      // One end for the query and the load, so that a signal tells who aborted it.
      const limits = { loadTimeoutMs: 90, queryTimeoutMs: 90 }
      const { clock, cache, query, loads, tally } = cached({ maxConcurrentLoads: 2, ...limits })
      const readers: { watched: Watched; request: AbortController }[] = []
      for (const step of [...steps, { do: 'advance' as const, ms: 100 }]) {
        if (step.do === 'read') {
          const request = new AbortController()
          readers.push({ watched: watch(query.read(step.key, request.signal)), request })
        }
        if (step.do === 'end') {
          const load = loads[step.which % Math.max(1, loads.length)]
          if (load) end(load, step.how)
        }
        if (step.do === 'hang-up') readers[step.which % Math.max(1, readers.length)]?.request.abort(HUNG_UP)
        if (step.do === 'write') cache.invalidate([step.key])
        if (step.do === 'advance') await clock.advanceAsync(step.ms)
        await promisesSettled()
        expect(tally.inFlight).toBeLessThanOrEqual(2)
      }
      const { l1, flights, loads: ends } = tally
      const fates = readers.map(({ watched }) => watched.fate)
      const refused = fates.filter(fate => kindOf(fate) === 'refused').length
      expect(fates).not.toContain('open')
      expect(l1.hit + l1.negative + l1.miss).toBe(readers.length)
      expect(flights.leader + flights.follower).toBe(l1.miss)
      expect(flights.leader).toBe(loads.length + ends.refused)
      expect(ends.refused).toBe(refused)
      expect(tally.waitTimeouts).toBe(fates.filter(fate => kindOf(fate) === 'wait-timeout').length)
      // The others were cancelled, whoever's load was left by all.
      const cancelled = loads.length - ends.ok - ends.failed - ends.timeout
      const aborted = loads.filter(({ run }) => run.signal.reason === HUNG_UP).length
      expect(cancelled).toBe(aborted)
      expect(tally.inFlight).toBe(0)
      expect(clock.pendingTimers).toBe(0)
      expect(readers.flatMap(({ request }) => getEventListeners(request.signal, 'abort'))).toEqual([])
    }),
    { numRuns: 120 },
  )
})

function kindOf(fate: Watched['fate']): unknown {
  return typeof fate === 'object' && 'threw' in fate ? (fate.threw as { kind?: unknown }).kind : undefined
}

describe('a storm', () => {
  const warnings: Error[] = []
  const collect = (warning: Error) => void warnings.push(warning)
  beforeEach(() => {
    warnings.length = 0
    process.on('warning', collect)
  })
  afterEach(() => void process.off('warning', collect))

  test('of 20,000 readers of one expired key makes one load, and no warning', async () => {
    const { clock, query, loads, fill, tally } = cached({ l1Seconds: 20 })
    await fill('A', 'old')
    await clock.advanceAsync(20_001)
    const shared = new AbortController()
    const readers = Array.from({ length: 20_000 }, (_, index) =>
      watch(query.read('A', index % 2 === 0 ? shared.signal : new AbortController().signal)),
    )
    expect(loads).toHaveLength(2)
    expect(clock.pendingTimers).toBe(1)
    loads[1]?.bring('new')
    await promisesSettled()
    expect(
      readers.every(({ fate }) => typeof fate === 'object' && 'value' in fate && fate.value === 'new'),
    ).toBe(true)
    expect(tally.flights).toEqual({ leader: 2, follower: 19_999 })
    expect(getEventListeners(shared.signal, 'abort')).toEqual([])
    expect(warnings).toEqual([])
  })

  test('of 10,000 reads, of which many are given up, leaves no listener on a long-lived signal and no timer', async () => {
    const { clock, query, loader } = cached({ maxBytes: 65_536 })
    const longLived = new AbortController()
    for (let reads = 0; reads < 10_000; reads += 4) {
      const request = new AbortController()
      loader.onLoad = load => longLived.signal.aborted || end(load, reads % 3 === 0 ? 'failure' : 'value')
      const landed = watch(query.read(`${reads} lands`, longLived.signal))
      loader.onLoad = load => load.obey()
      const readers = [
        landed,
        watch(query.read(`${reads} waits`, longLived.signal)),
        watch(query.read(`${reads} waits`, request.signal)),
        watch(query.read(`${reads} hangs up`, request.signal)),
      ]
      request.abort(HUNG_UP)
      await clock.advanceAsync(100)
      expect(readers.map(({ fate }) => fate)).not.toContain('open')
    }
    expect(getEventListeners(longLived.signal, 'abort')).toEqual([])
    expect(clock.pendingTimers).toBe(0)
    expect(warnings).toEqual([])
  })
})
