import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { shardOf } from '../../src/cache/index.ts'
import { promisesSettled } from '../support/virtual-clock.ts'
import { cached, watch } from './loads.ts'
import { StagedTier } from './staged-tier.ts'

const HUNG_UP = new Error('the client hung up')

function tiered(options: Parameters<typeof cached>[0] = {}) {
  const second = new StagedTier()
  const parts = cached(options, { second })
  /** A read of `asked` that the tier knows nothing of, up to its load. */
  const miss = async (asked: string) => {
    const reader = watch(parts.query.read(asked))
    second.gets.at(-1)?.say({ kind: 'missing', ticket: `ticket of ${asked}` })
    await promisesSettled()
    return reader
  }
  return { ...parts, second, miss }
}

describe('the second tier', () => {
  test('is asked once for all who wait, and what it has is kept in memory like a load', async () => {
    const { clock, query, second, loads, tally } = tiered({ l1Seconds: 20 })
    const readers = [watch(query.read('A')), watch(query.read('A'))]
    expect(second.gets).toMatchObject([{ key: 'A', tags: ['A'] }])
    second.gets[0]?.say({ kind: 'found', text: '{"value":{"n":[1]}}' })
    await promisesSettled()
    expect(readers.map(({ fate }) => fate)).toEqual([{ value: { n: [1] } }, { value: { n: [1] } }])
    await clock.advanceAsync(20_000)
    const held = query.peek('A') as { value: { n: number[] } }
    expect(held).toEqual({ value: { n: [1] } })
    expect(Object.isFrozen(held.value.n)).toBe(true)
    expect([loads.length, second.puts.length]).toEqual([0, 0])
    expect(tally).toMatchObject({
      l1: { hit: 1, miss: 2, negative: 0 },
      l2: { hit: 1, miss: 0, negative: 0 },
      flights: { leader: 1, follower: 1 },
      loads: { ok: 0 },
    })
  })

  test('is given what was loaded, under the ticket of its own answer, for l2Minutes', async () => {
    const { second, loads, miss, tally } = tiered({ l2Minutes: 10 })
    const reader = await miss('A')
    loads[0]?.bring({ n: 1 })
    await promisesSettled()
    expect(reader.fate).toEqual({ value: { n: 1 } })
    expect(second.puts).toEqual([
      { key: 'A', text: '{"value":{"n":1}}', put: { tags: ['A'], ttlMs: 600_000, ticket: 'ticket of A' } },
    ])
    expect(tally.l2).toEqual({ hit: 0, miss: 1, negative: 0 })
  })

  test('keeps that there is no such thing for negativeSeconds, and gives it back as such', async () => {
    const { query, second, loads, miss, tally } = tiered({ negativeSeconds: 2 })
    await miss('A')
    loads[0]?.bring(undefined)
    await promisesSettled()
    expect(second.puts[0]?.put.ttlMs).toBe(2_000)
    const reader = watch(query.read('B'))
    second.gets[1]?.say({ kind: 'found', text: second.puts[0]?.text ?? '' })
    await promisesSettled()
    expect(reader.fate).toEqual({ value: undefined })
    expect(query.peek('B')).toEqual({ value: undefined })
    expect(loads).toHaveLength(1)
    expect(tally.l2).toEqual({ hit: 0, miss: 1, negative: 1 })
  })

  test('gives back every value as it was', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ stringUnit: 'grapheme' }), async value => {
        const { query, second, loads, miss } = tiered()
        await miss('A')
        loads[0]?.bring(value)
        await promisesSettled()
        const reader = watch(query.read('B'))
        second.gets[1]?.say({ kind: 'found', text: second.puts[0]?.text ?? '' })
        await promisesSettled()
        expect(reader.fate).toEqual({ value: JSON.parse(JSON.stringify(value)) })
      }),
      { numRuns: 50 },
    )
  })

  test.each([
    ['fails', (tier: StagedTier) => tier.gets[0]?.fail()],
    ['says nothing that is an answer', (tier: StagedTier) => tier.gets[0]?.say(null as never)],
  ])('that %s is a miss, and is given nothing', async (_name, act) => {
    const { query, second, loads, tally } = tiered()
    const reader = watch(query.read('A'))
    act(second)
    await promisesSettled()
    loads[0]?.bring(1)
    await promisesSettled()
    expect(reader.fate).toEqual({ value: 1 })
    expect(second.puts).toHaveLength(0)
    expect(tally).toMatchObject({ l2: { miss: 1 }, loads: { ok: 1, failed: 0 } })
  })

  test('that throws is a miss', async () => {
    const { query, second, loads } = tiered()
    second.onCall = () => {
      throw new Error('no connection')
    }
    const reader = watch(query.read('A'))
    await promisesSettled()
    loads[0]?.bring(1)
    await promisesSettled()
    expect(reader.fate).toEqual({ value: 1 })
  })

  test('that hangs is a miss after its timeout, and the limits of the load run from then on', async () => {
    const { clock, query, second, loads } = tiered({ waitTimeoutMs: 200 })
    const reader = watch(query.read('A'))
    await clock.advanceAsync(second.timeoutMs - 1)
    expect(loads).toHaveLength(0)
    await clock.advanceAsync(1)
    expect(loads[0]?.run.endsAtMs).toBe(clock.nowMs() + 75)
    await clock.advanceAsync(89)
    expect(reader.fate).toBe('open')
    await clock.advanceAsync(1)
    expect(reader.fate).toEqual({ threw: expect.objectContaining({ kind: 'load-timeout' }) })
  })

  test.each(['', '{', 'null', '5', 'true', '"text"', '[]', '[1]', '{"other":1}'])(
    'that has the nonsense %j is a miss',
    async text => {
      const { query, second, loads, tally } = tiered()
      const reader = watch(query.read('A'))
      second.gets[0]?.say({ kind: 'found', text })
      await promisesSettled()
      expect(loads).toHaveLength(1)
      loads[0]?.bring(1)
      await promisesSettled()
      expect(reader.fate).toEqual({ value: 1 })
      expect(tally.l2).toEqual({ hit: 0, miss: 1, negative: 0 })
    },
  )

  test('that has a value deeper than any of ours is a miss', async () => {
    const { query, second, loads } = tiered()
    const reader = watch(query.read('A'))
    second.gets[0]?.say({ kind: 'found', text: `{"value":${'['.repeat(50_000)}${']'.repeat(50_000)}}` })
    await promisesSettled()
    loads[0]?.bring(1)
    await promisesSettled()
    expect(reader.fate).toEqual({ value: 1 })
  })

  test('is given nothing that passes, that is too large, or that is to be asked every time', async () => {
    const { second, loads, miss } = tiered({ maxEntryBytes: 1_024, negativeSeconds: 0 })
    await miss('A')
    loads[0]?.pass(1)
    await miss('B')
    loads[1]?.bring('v'.repeat(1_025))
    await miss('C')
    loads[2]?.bring(undefined)
    await promisesSettled()
    expect(second.puts).toEqual([])
  })

  test('is passed by for tags that it has not yet confirmed to have forgotten', async () => {
    const { cache, query, second, loads } = tiered()
    cache.invalidate(['A'])
    const reader = watch(query.read('A'))
    expect([second.gets.length, loads.length]).toEqual([0, 1])
    loads[0]?.bring(1)
    await promisesSettled()
    expect(reader.fate).toEqual({ value: 1 })
    expect(second.puts).toHaveLength(0)
    second.invalidations[0]?.say()
    await promisesSettled()
    cache.invalidate(['other'])
    void watch(query.read('B'))
    expect(second.gets).toHaveLength(1)
  })

  test('is not asked for any more once nobody waits, and nothing is loaded', async () => {
    const { clock, query, second, loads } = tiered()
    const request = new AbortController()
    const reader = watch(query.read('A', request.signal))
    request.abort(HUNG_UP)
    await promisesSettled()
    expect(reader.fate).toEqual({ threw: HUNG_UP })
    expect(second.gets[0]?.signal?.aborted).toBe(true)
    expect([loads.length, clock.pendingTimers]).toEqual([0, 0])
  })

  test('is answered too late for who finds in memory what a later flight has brought meanwhile', async () => {
    const { cache, query, second, loads, tally } = tiered()
    const early = watch(query.read('A'))
    cache.invalidate(['A'])
    const late = watch(query.read('A'))
    loads[0]?.bring('new')
    await promisesSettled()
    second.gets[0]?.say({ kind: 'missing', ticket: 't' })
    await promisesSettled()
    expect([early.fate, late.fate]).toEqual([{ value: 'new' }, { value: 'new' }])
    expect(loads).toHaveLength(1)
    expect(tally.flights).toEqual({ leader: 2, follower: 0 })
  })
})

describe('what other instances tell', () => {
  test('puts entries and loads out of date here, and is not told to the tier again', async () => {
    const { query, second, loads, fill, tally } = tiered()
    const filling = fill('A', 'old')
    second.gets[0]?.say({ kind: 'missing', ticket: 't' })
    await filling
    void watch(query.read('B'))
    second.gets[1]?.say({ kind: 'missing', ticket: 't' })
    await promisesSettled()
    for (const { invalidated } of second.listeners) invalidated(['A', 'B'])
    expect(query.peek('A')).toBeUndefined()
    loads[1]?.bring('old')
    await promisesSettled()
    expect(query.peek('B')).toBeUndefined()
    expect(second.invalidations).toHaveLength(0)
    expect(tally.invalidations).toBe(1)
  })

  test('may have been missed: then memory is dropped, and nothing that began before is kept or shared', async () => {
    const { query, second, loads, miss } = tiered()
    await miss('A')
    loads[0]?.bring('old')
    await promisesSettled()
    const early = await miss('B')
    for (const { lost } of second.listeners) lost()
    expect(query.peek('A')).toBeUndefined()
    await miss('B')
    expect(loads).toHaveLength(3)
    loads[1]?.bring('old')
    await promisesSettled()
    expect(early.fate).toEqual({ value: 'old' })
    expect(query.peek('B')).toBeUndefined()
  })

  test('is heard until the cache is closed, which leaves no timer', async () => {
    const { clock, cache, second } = tiered()
    expect(second.listeners.size).toBe(1)
    cache.invalidate(['A'])
    second.invalidations[0]?.fail()
    await promisesSettled()
    expect(clock.pendingTimers).toBe(1)
    cache.close()
    expect([second.listeners.size, clock.pendingTimers]).toEqual([0, 0])
  })
})

describe('a hot key', () => {
  const hotKeys = { share: 0.5, minSamples: 4, windowMs: 10_000, replicas: 16 }

  test('is looked up and kept under the copy that is this instance’s, and others under their own name', async () => {
    const { second, loads, miss } = tiered({ hotKeys, negativeSeconds: 0 })
    for (let reads = 0; reads < 5; reads++) {
      await miss('popular')
      loads.at(-1)?.bring(reads < 4 ? undefined : 1)
      await promisesSettled()
    }
    await miss('cold')
    const copy = `popular#${shardOf('instance-1', 16)}`
    expect(second.gets.map(({ key }) => key)).toEqual(['popular', 'popular', 'popular', copy, copy, 'cold'])
    expect(second.puts.map(({ key }) => key)).toEqual([copy])
    // Its tags stay its own, so that one invalidation reaches all copies.
    expect(second.puts[0]?.put.tags).toEqual(['popular'])
  })

  test('is counted with the hits that it has in memory, and told when it becomes hot', async () => {
    const { cache, channels, query, miss, loads } = tiered({ hotKeys: { ...hotKeys, minSamples: 1_000 } })
    const told: { key: string; share: number; hot: boolean }[] = []
    channels.hotKey.subscribe(change => told.push(change))
    await miss('popular')
    loads[0]?.bring(1)
    await promisesSettled()
    for (let reads = 0; reads < 1_100; reads++) query.peek('popular')
    expect(cache.hotKeys).toBe(1)
    expect(told).toEqual([{ key: 'popular', share: expect.closeTo(1, 1), hot: true }])
  })
})
