import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { promisesSettled } from '../support/virtual-clock.ts'
import { cached, watch } from './loads.ts'
import { StagedTier } from './staged-tier.ts'

/** What other caches are known to get wrong, each made to happen here. */

const HUNG_UP = new Error('the client hung up')
const NO_STORE = new Error('no store')

describe('a stale fill', () => {
  test('whose loader began before the write is neither kept nor given to who came after it', async () => {
    const { cache, query, loads, tally } = cached()
    const before = watch(query.read('A'))
    cache.invalidate(['A'])
    const after = watch(query.read('A'))
    expect(loads).toHaveLength(2)
    loads[0]?.bring('old')
    await promisesSettled()
    expect([before.fate, after.fate]).toEqual([{ value: 'old' }, 'open'])
    expect(query.peek('A')).toBeUndefined()
    loads[1]?.bring('new')
    await promisesSettled()
    expect(after.fate).toEqual({ value: 'new' })
    expect(query.peek('A')).toEqual({ value: 'new' })
    expect(tally.fillsRefused).toBe(1)
  })

  test('that comes after the fresh one does not take its place', async () => {
    const { cache, query, loads } = cached()
    void watch(query.read('A'))
    cache.invalidate(['A'])
    void watch(query.read('A'))
    loads[1]?.bring('new')
    await promisesSettled()
    loads[0]?.bring('old')
    await promisesSettled()
    expect(query.peek('A')).toEqual({ value: 'new' })
  })

  test('of a negative answer, that was true before the write, is refused too', async () => {
    const { cache, query, loads } = cached()
    void watch(query.read('A'))
    cache.invalidate(['A'])
    loads[0]?.bring(undefined)
    await promisesSettled()
    expect(query.peek('A')).toBeUndefined()
  })

  test('by a refresh ahead is refused, and keeps nobody waiting', async () => {
    const { clock, cache, query, loads, fill } = cached({ l1Seconds: 20, refreshAheadRatio: 0.2 })
    await fill('A', 'old')
    await clock.advanceAsync(16_000)
    query.peek('A')
    expect(loads).toHaveLength(2)
    cache.invalidate(['A'])
    const after = watch(query.read('A'))
    expect(loads).toHaveLength(3)
    loads[2]?.bring('new')
    await promisesSettled()
    expect(after.fate).toEqual({ value: 'new' })
    loads[1]?.bring('old')
    await promisesSettled()
    expect(query.peek('A')).toEqual({ value: 'new' })
  })

  test('out of the second tier is refused, whether the tier has confirmed the write or not', async () => {
    for (const confirmed of [true, false]) {
      const second = new StagedTier()
      const { cache, query, loads } = cached({}, { second })
      const before = watch(query.read('A'))
      cache.invalidate(['A'])
      if (confirmed) second.invalidations[0]?.say()
      await promisesSettled()
      const after = watch(query.read('A'))
      second.gets[0]?.say({ kind: 'found', text: '{"value":"old"}' })
      await promisesSettled()
      expect(query.peek('A')).toBeUndefined()
      expect(after.fate).toBe('open')
      // Only who began before the write may still be told of what the tier had then.
      if (confirmed) expect(before.fate).toEqual({ value: 'old' })
      else expect(loads).toHaveLength(2)
    }
  })

  test('is not put into the second tier either, though that has confirmed the write', async () => {
    const second = new StagedTier()
    const { cache, query, loads } = cached({}, { second })
    void watch(query.read('A'))
    second.gets[0]?.say({ kind: 'missing', ticket: 'before' })
    await promisesSettled()
    cache.invalidate(['A'])
    second.invalidations[0]?.say()
    await promisesSettled()
    loads[0]?.bring('old')
    await promisesSettled()
    expect(second.puts).toEqual([])
    void watch(query.read('A'))
    second.gets[1]?.say({ kind: 'missing', ticket: 'after' })
    await promisesSettled()
    loads[1]?.bring('new')
    await promisesSettled()
    expect(second.puts).toMatchObject([{ text: '{"value":"new"}', put: { ticket: 'after' } }])
  })

  test('is refused for any one of several tags', async () => {
    const { cache } = cached()
    const landing = Promise.withResolvers<{ value: string }[]>()
    const query = cache.query<string, string>({
      keyOf: asked => asked,
      tagsOf: () => ['order', 'customer'],
      load: () => landing.promise,
    })
    void watch(query.read('A'))
    cache.invalidate(['customer', 'other'])
    landing.resolve([{ value: 'old' }])
    await promisesSettled()
    expect(query.peek('A')).toBeUndefined()
  })
})

describe('time', () => {
  test('plays no part: a write and its invalidation in the very millisecond of a load are seen', async () => {
    const { clock, cache, query, loads, fill } = cached()
    const atMs = clock.nowMs()
    await fill('A', 'old')
    cache.invalidate(['A'])
    expect(query.peek('A')).toBeUndefined()
    void watch(query.read('A'))
    cache.invalidate(['A'])
    loads[1]?.bring('old')
    await promisesSettled()
    expect(query.peek('A')).toBeUndefined()
    await fill('A', 'new')
    expect(query.peek('A')).toEqual({ value: 'new' })
    expect(clock.nowMs()).toBe(atMs)
  })

  test('of the wall set back makes nothing older or younger', async () => {
    const { clock, query, fill } = cached({ l1Seconds: 20 })
    await fill('A', 1)
    clock.setWallMs(0)
    await clock.advanceAsync(20_000)
    expect(query.peek('A')).toEqual({ value: 1 })
    await clock.advanceAsync(1)
    expect(query.peek('A')).toBeUndefined()
  })
})

describe('an old flight', () => {
  test.each(['lands', 'fails', 'runs into its limit', 'is left by all'])(
    'that %s does not remove the one that took its place',
    async how => {
      const { clock, cache, query, loads, tally } = cached({ maxConcurrentLoads: 2 })
      const request = new AbortController()
      const early = watch(query.read('A', request.signal))
      await clock.advanceAsync(50)
      cache.invalidate(['A'])
      const reader = watch(query.read('A'))
      if (how === 'lands') loads[0]?.bring('old')
      if (how === 'fails') loads[0]?.fail(NO_STORE)
      if (how === 'runs into its limit') await clock.advanceAsync(40)
      if (how === 'is left by all') request.abort(HUNG_UP)
      await promisesSettled()
      expect(early.fate).not.toBe('open')
      const newcomer = watch(query.read('A'))
      expect(loads).toHaveLength(2)
      loads[1]?.bring('new')
      await promisesSettled()
      expect([reader.fate, newcomer.fate]).toEqual([{ value: 'new' }, { value: 'new' }])
      expect(tally.inFlight).toBe(0)
    },
  )
})

describe('a loader', () => {
  const rejections: unknown[] = []
  const collect = (reason: unknown) => void rejections.push(reason)
  beforeEach(() => {
    rejections.length = 0
    process.on('unhandledRejection', collect)
  })
  afterEach(() => void process.off('unhandledRejection', collect))

  test('that throws at once fails its readers, and is asked again by the next', async () => {
    const { query, loader, tally } = cached({ maxConcurrentLoads: 1 })
    loader.onLoad = () => {
      throw NO_STORE
    }
    const readers = [watch(query.read('A')), watch(query.read('A'))]
    await promisesSettled()
    expect(readers.map(({ fate }) => fate)).toEqual([{ threw: NO_STORE }, { threw: NO_STORE }])
    loader.onLoad = load => load.bring(1)
    expect(await query.read('A')).toBe(1)
    expect(tally).toMatchObject({ inFlight: 0, loads: { ok: 1, failed: 1 } })
  })

  test('that rejects with null has failed', async () => {
    const { query, loads, tally } = cached()
    const readers = [watch(query.read('A')), watch(query.read('A'))]
    loads[0]?.fail(null)
    await promisesSettled()
    expect(readers.map(({ fate }) => fate)).toEqual([{ threw: null }, { threw: null }])
    expect(query.peek('A')).toBeUndefined()
    expect(tally.loads.failed).toBe(1)
  })

  test('that never settles holds neither its readers, nor its key, nor its permit', async () => {
    const { clock, query, loads, loader } = cached({ maxConcurrentLoads: 1 })
    const reader = watch(query.read('A'))
    await clock.advanceAsync(90)
    expect(reader.fate).toEqual({ threw: expect.objectContaining({ kind: 'load-timeout' }) })
    loader.onLoad = load => load.bring(1)
    expect(await query.read('A')).toBe(1)
    expect([loads.length, clock.pendingTimers]).toEqual([2, 0])
  })

  test('that rejects when all have left is nobody’s unhandled rejection', async () => {
    const { clock, query, loads, loader } = cached()
    loader.onLoad = load => load.obey()
    const request = new AbortController()
    void watch(query.read('A', request.signal))
    request.abort(HUNG_UP)
    await promisesSettled()
    loader.onLoad = () => {}
    void watch(query.read('B'))
    await clock.advanceAsync(100)
    loads[1]?.fail(NO_STORE)
    await promisesSettled()
    expect(rejections).toEqual([])
  })

  test('that rejects a refresh is nobody’s unhandled rejection', async () => {
    const { clock, query, loads, fill } = cached({ l1Seconds: 20, refreshAheadRatio: 0.2 })
    await fill('A', 1)
    await clock.advanceAsync(16_000)
    query.peek('A')
    loads[1]?.fail(NO_STORE)
    await promisesSettled()
    expect(rejections).toEqual([])
  })

  test('of whose readers one leaves, the first too, goes on for the others', async () => {
    const { query, loads } = cached()
    const request = new AbortController()
    const leader = watch(query.read('A', request.signal))
    const follower = watch(query.read('A'))
    request.abort(HUNG_UP)
    loads[0]?.bring(1)
    await promisesSettled()
    expect([leader.fate, follower.fate]).toEqual([{ threw: HUNG_UP }, { value: 1 }])
    expect(loads[0]?.run.signal.aborted).toBe(false)
  })
})

describe('a name', () => {
  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', ''])(
    'like %j is a key and a tag like any other',
    async name => {
      const { cache, query, loads, fill } = cached()
      expect(query.peek(name)).toBeUndefined()
      await fill('other', 'other')
      await fill(name, 'old')
      expect(query.peek(name)).toEqual({ value: 'old' })
      void watch(query.read('third'))
      cache.invalidate([name])
      expect(query.peek(name)).toBeUndefined()
      expect(query.peek('other')).toEqual({ value: 'other' })
      loads[2]?.bring('third')
      await promisesSettled()
      expect(query.peek('third')).toEqual({ value: 'third' })
    },
  )
})

describe('a caller', () => {
  test('cannot change what another one gets', async () => {
    const { query, fill } = cached()
    await fill('A', { items: [{ sku: 'A' }] })
    const got = (await query.read('A')) as { items: { sku: string }[] }
    expect(() => got.items.push({ sku: 'B' })).toThrow(TypeError)
    expect(() => {
      for (const item of got.items) item.sku = 'B'
    }).toThrow(TypeError)
    expect(await query.read('A')).toEqual({ items: [{ sku: 'A' }] })
  })

  test('of the same flight cannot either, even where nothing is kept', async () => {
    const { query, loads } = cached()
    const readers = [query.read('A'), query.read('A')]
    loads[0]?.pass({ n: 1 })
    const [one] = (await Promise.all(readers)) as { n: number }[]
    expect(() => {
      if (one) one.n = 2
    }).toThrow(TypeError)
  })
})
