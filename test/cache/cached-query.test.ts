import { describe, expect, test } from 'vitest'
import { promisesSettled } from '../support/virtual-clock.ts'
import { cached, watch } from './loads.ts'

const HUNG_UP = new Error('the client hung up')
const NO_STORE = new Error('no store')
const failure = (kind: string) => ({ threw: expect.objectContaining({ name: 'CacheFailure', kind }) })

describe('a read', () => {
  test('is answered from memory for l1Seconds after one load', async () => {
    const { clock, query, loads, fill } = cached({ l1Seconds: 20 })
    await fill('A', { n: 1 })
    await clock.advanceAsync(20_000)
    expect(await query.read('A')).toEqual({ n: 1 })
    expect(loads).toHaveLength(1)
    await clock.advanceAsync(1)
    await fill('A', { n: 2 })
    expect(await query.read('A')).toEqual({ n: 2 })
    expect(loads.map(({ asks }) => asks)).toEqual([['A'], ['A']])
  })

  test('of what is being loaded waits along, and of something else does not', async () => {
    const { query, loads, tally } = cached()
    const readers = [watch(query.read('A')), watch(query.read('A')), watch(query.read('B'))]
    expect(loads.map(({ asks }) => asks)).toEqual([['A'], ['B']])
    loads[0]?.bring(1)
    await promisesSettled()
    expect(readers.map(({ fate }) => fate)).toEqual([{ value: 1 }, { value: 1 }, 'open'])
    expect(tally.flights).toEqual({ leader: 2, follower: 1 })
  })

  test('hands out a value that passes to all who wait, and keeps it for nobody', async () => {
    const { query, loads } = cached()
    const readers = [watch(query.read('A')), watch(query.read('A'))]
    loads[0]?.pass(1)
    await promisesSettled()
    expect(readers.map(({ fate }) => fate)).toEqual([{ value: 1 }, { value: 1 }])
    expect(query.peek('A')).toBeUndefined()
  })

  test('of one kind of question shares nothing with another kind', async () => {
    const { cache, query, loads } = cached()
    const other = cache.query<string, string>({
      keyOf: asked => `other:${asked}`,
      tagsOf: () => [],
      load: async () => [{ value: 'other' }],
    })
    const reader = watch(query.read('A'))
    expect(await other.read('A')).toBe('other')
    loads[0]?.bring(1)
    await promisesSettled()
    expect(reader.fate).toEqual({ value: 1 })
  })

  test('whose request has ended loads nothing, and leaves no flight behind', async () => {
    const { query, loads, tally } = cached()
    await expect(query.read('A', AbortSignal.abort(HUNG_UP))).rejects.toBe(HUNG_UP)
    expect(loads).toHaveLength(0)
    expect(tally.flights).toEqual({ leader: 0, follower: 0 })
  })

  test('gives its load the limit of a query, and the count of the fence on which to be judged', async () => {
    const { clock, cache, query, loads } = cached({ queryTimeoutMs: 75 })
    cache.invalidate(['A'])
    cache.invalidate(['B'])
    void watch(query.read('A'))
    expect(loads[0]?.run).toMatchObject({ endsAtMs: clock.nowMs() + 75, fence: { now: 2, notBefore: 1 } })
    expect(loads[0]?.run.traceparent).toBeUndefined()
  })

  test.each([
    ['fewer answers than questions', []],
    ['no list', undefined],
    ['a gap', [undefined]],
  ])('of a loader that brings %s fails, and does so again', async (_name, answers) => {
    const { cache, tally } = cached()
    const query = cache.query({ keyOf: () => 'A', tagsOf: () => [], load: async () => answers as never })
    await expect(query.read('A')).rejects.toThrow(TypeError)
    await expect(query.read('A')).rejects.toThrow(TypeError)
    expect(tally.loads.failed).toBe(2)
    expect(tally.inFlight).toBe(0)
  })
})

describe('an invalidation', () => {
  test('puts out of date whatever carries one of its tags, stored or being loaded, and nothing else', async () => {
    const { cache, query, loads, fill, tally } = cached()
    for (const asked of ['A', 'B', 'C']) await fill(asked, 'old')
    const loading = ['D', 'E', 'F'].map(asked => watch(query.read(asked)))
    cache.invalidate(['B', 'C', 'E', 'F'])
    for (const load of loads.slice(3)) load.bring('old')
    await promisesSettled()
    for (const { fate } of loading) expect(fate).toEqual({ value: 'old' })
    const held = ['A', 'B', 'C', 'D', 'E', 'F'].filter(asked => query.peek(asked))
    expect(held).toEqual(['A', 'D'])
    expect(tally).toMatchObject({ invalidations: 1, fillsRefused: 2 })
  })
})

describe('that there is no such thing', () => {
  test('is an answer for negativeSeconds, less than for what there is', async () => {
    const { clock, query, loads, fill, tally } = cached({ negativeSeconds: 2 })
    await fill('A', undefined)
    await clock.advanceAsync(2_000)
    expect(query.peek('A')).toEqual({ value: undefined })
    expect(await query.read('A')).toBeUndefined()
    await clock.advanceAsync(1)
    expect(query.peek('A')).toBeUndefined()
    expect(loads).toHaveLength(1)
    expect(tally.l1).toEqual({ hit: 0, negative: 2, miss: 1 })
  })

  test('is asked every time where negativeSeconds is 0, and ends what was kept before', async () => {
    const { clock, query, loads, fill } = cached({
      negativeSeconds: 0,
      l1Seconds: 20,
      refreshAheadRatio: 0.5,
    })
    await fill('A', 1)
    await clock.advanceAsync(15_000)
    // A refresh finds that it is gone.
    expect(await query.read('A')).toBe(1)
    loads[1]?.bring(undefined)
    await promisesSettled()
    expect(query.peek('A')).toBeUndefined()
    await fill('A', undefined)
    await fill('A', undefined)
    expect(loads).toHaveLength(4)
  })
})

describe('an error', () => {
  test('reaches all who wait at that moment, and nobody after', async () => {
    const { query, loads, tally } = cached()
    const readers = [watch(query.read('A')), watch(query.read('A'))]
    loads[0]?.fail(NO_STORE)
    await promisesSettled()
    expect(readers.map(({ fate }) => fate)).toEqual([{ threw: NO_STORE }, { threw: NO_STORE }])
    const next = watch(query.read('A'))
    loads[1]?.bring(1)
    await promisesSettled()
    expect(next.fate).toEqual({ value: 1 })
    expect(tally.loads).toEqual({ ok: 1, failed: 1, timeout: 0, refused: 0 })
  })

  test('leaves what another load has kept', async () => {
    const { cache, query, loads, fill } = cached()
    const early = watch(query.read('A'))
    cache.invalidate(['A'])
    await fill('A', 2)
    loads[0]?.fail(NO_STORE)
    await promisesSettled()
    expect(early.fate).toEqual({ threw: NO_STORE })
    expect(query.peek('A')).toEqual({ value: 2 })
  })
})

describe('whoever gives up', () => {
  test('after waitTimeoutMs ends only its own wait, and the load goes on for the others', async () => {
    const { clock, query, loads, tally } = cached({
      waitTimeoutMs: 100,
      loadTimeoutMs: 200,
      queryTimeoutMs: 190,
    })
    const first = watch(query.read('A'))
    await clock.advanceAsync(50)
    const second = watch(query.read('A'))
    await clock.advanceAsync(50)
    expect([first.fate, second.fate]).toEqual([failure('wait-timeout'), 'open'])
    expect(loads[0]?.run.signal.aborted).toBe(false)
    loads[0]?.bring(1)
    await promisesSettled()
    expect(second.fate).toEqual({ value: 1 })
    expect(query.peek('A')).toEqual({ value: 1 })
    expect(tally).toMatchObject({ waitTimeouts: 1, loads: { ok: 1, failed: 0, timeout: 0, refused: 0 } })
  })

  test('last aborts the load, which then counts as nothing and is kept by nobody', async () => {
    const { clock, query, loads, tally } = cached()
    const requests = [new AbortController(), new AbortController()]
    const readers = requests.map(({ signal }) => watch(query.read('A', signal)))
    requests[0]?.abort(HUNG_UP)
    expect(loads[0]?.run.signal.aborted).toBe(false)
    requests[1]?.abort(HUNG_UP)
    expect(loads[0]?.run.signal.reason).toBe(HUNG_UP)
    loads[0]?.bring(1)
    await promisesSettled()
    expect(readers.map(({ fate }) => fate)).toEqual([{ threw: HUNG_UP }, { threw: HUNG_UP }])
    expect(query.peek('A')).toBeUndefined()
    expect(tally).toMatchObject({ inFlight: 0, loads: { ok: 0, failed: 0, timeout: 0, refused: 0 } })
    expect(clock.pendingTimers).toBe(0)
  })

  test('leaves a key that can be loaded at once again', async () => {
    const { query, loads, tally } = cached({ maxConcurrentLoads: 1 })
    const request = new AbortController()
    void watch(query.read('A', request.signal))
    request.abort(HUNG_UP)
    const next = watch(query.read('A'))
    loads[1]?.bring(2)
    await promisesSettled()
    expect(next.fate).toEqual({ value: 2 })
    expect(tally.flights).toEqual({ leader: 2, follower: 0 })
  })
})

describe('a load past its limit', () => {
  test('fails all who wait, frees the key and the permit, and its late answer is kept by nobody', async () => {
    const { clock, query, loads, tally } = cached({ maxConcurrentLoads: 1 })
    const readers = [watch(query.read('A')), watch(query.read('A'))]
    await clock.advanceAsync(75)
    expect(loads[0]?.run.signal.aborted).toBe(true)
    readers.push(watch(query.read('A')))
    await clock.advanceAsync(15)
    for (const { fate } of readers) expect(fate).toEqual(failure('load-timeout'))
    expect(tally.inFlight).toBe(0)

    const next = watch(query.read('A'))
    loads[0]?.bring('late')
    await promisesSettled()
    expect(query.peek('A')).toBeUndefined()
    loads[1]?.bring('new')
    await promisesSettled()
    expect(next.fate).toEqual({ value: 'new' })
    expect(query.peek('A')).toEqual({ value: 'new' })
    expect(tally.loads).toEqual({ ok: 1, failed: 0, timeout: 1, refused: 0 })
  })

  test('is told by its signal first, and counts as timed out when it listens', async () => {
    const { clock, query, loader, tally } = cached()
    loader.onLoad = load => load.obey()
    const reader = watch(query.read('A'))
    await clock.advanceAsync(75)
    expect(reader.fate).toEqual(failure('load-timeout'))
    expect(tally.loads).toEqual({ ok: 0, failed: 0, timeout: 1, refused: 0 })
  })
})
