import { describe, expect, test } from 'vitest'
import { promisesSettled } from '../support/virtual-clock.ts'
import { cached, watch } from './loads.ts'
import { StagedTier } from './staged-tier.ts'

const HUNG_UP = new Error('the client hung up')
const NO_STORE = new Error('no store')
const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`

function batched(...setup: Parameters<typeof cached>) {
  const parts = cached(...setup)
  const request = new AbortController()
  const run = { signal: request.signal, endsAtMs: parts.clock.nowMs() + 150, traceparent: TRACEPARENT }
  const ask = (...asks: string[]) => watch(parts.query.readBatch(asks, run))
  return { ...parts, request, run, ask }
}

describe('a batch', () => {
  test('has one load for all that is missing, and answers in the order of its questions', async () => {
    const { loads, ask, fill, tally } = batched()
    await fill('B', 2)
    await fill('D', undefined)
    const answers = ask('A', 'B', 'C', 'D')
    await promisesSettled()
    expect(loads.slice(2).map(({ asks }) => asks)).toEqual([['A', 'C']])
    expect(tally.inFlight).toBe(1)
    loads[2]?.bring(1, 3)
    await promisesSettled()
    expect(answers.fate).toEqual({ value: [1, 2, 3, undefined].map(value => ({ value })) })
    expect(tally).toMatchObject({
      inFlight: 0,
      l1: { hit: 1, negative: 1, miss: 4 },
      loads: { ok: 3, failed: 0, timeout: 0, refused: 0 },
    })
  })

  test('keeps each answer under its own key, for whoever asks next', async () => {
    const { query, loads, ask } = batched()
    ask('A', 'B')
    await promisesSettled()
    loads[0]?.bring(1, undefined)
    await promisesSettled()
    const again = ask('B', 'A')
    await promisesSettled()
    expect(again.fate).toEqual({ value: [{ value: undefined }, { value: 1 }] })
    expect(await query.read('A')).toBe(1)
    expect(loads).toHaveLength(1)
  })

  test('of nothing, and of nothing that is missing, loads nothing', async () => {
    const { loads, ask, fill } = batched()
    await fill('A', 1)
    const [none, held] = [ask(), ask('A')]
    await promisesSettled()
    expect([none.fate, held.fate]).toEqual([{ value: [] }, { value: [{ value: 1 }] }])
    expect(loads).toHaveLength(1)
  })

  test('gives its load the caller’s own end, signal and trace, and how new each of the answers must be', async () => {
    const { cache, loads, run, ask } = batched()
    cache.invalidate(['A'])
    cache.invalidate(['B'])
    cache.invalidate(['C'])
    ask('A', 'B')
    await promisesSettled()
    expect(loads[0]?.run).toEqual({ ...run, fence: { now: 3, notBefore: 2 } })
    expect(loads[0]?.run.signal).toBe(run.signal)
  })

  test('asks no newer answers than what is missing needs', async () => {
    const { cache, loads, ask, fill } = batched()
    cache.invalidate(['A'])
    cache.invalidate(['B'])
    await fill('B', 2)
    ask('A', 'B')
    await promisesSettled()
    expect(loads[1]?.run.fence).toEqual({ now: 2, notBefore: 1 })
  })

  test('keeps none of what moved while it was loaded, and all the rest', async () => {
    const { cache, query, loads, ask, tally } = batched()
    const answers = ask('A', 'B')
    await promisesSettled()
    cache.invalidate(['A'])
    loads[0]?.bring(1, 2)
    await promisesSettled()
    expect(answers.fate).toEqual({ value: [{ value: 1 }, { value: 2 }] })
    expect([query.peek('A'), query.peek('B')]).toEqual([undefined, { value: 2 }])
    expect(tally.fillsRefused).toBe(1)
  })

  test('hands out values that pass, and says so, and keeps none', async () => {
    const { query, loads, ask } = batched()
    const answers = ask('A', 'B')
    await promisesSettled()
    loads[0]?.pass(1, 2)
    await promisesSettled()
    expect(answers.fate).toEqual({
      value: [
        { value: 1, passing: true },
        { value: 2, passing: true },
      ],
    })
    expect(query.peek('A')).toBeUndefined()
  })

  test('fails as its load does, which is counted, and the next one asks again', async () => {
    const { loads, loader, ask, tally } = batched()
    const failed = ask('A')
    await promisesSettled()
    loads[0]?.fail(NO_STORE)
    await promisesSettled()
    expect(failed.fate).toEqual({ threw: NO_STORE })
    expect(tally).toMatchObject({ inFlight: 0, loads: { ok: 0, failed: 1 } })

    loader.onLoad = () => {
      throw NO_STORE
    }
    const thrown = ask('A')
    await promisesSettled()
    expect(thrown.fate).toEqual({ threw: NO_STORE })
    expect(tally).toMatchObject({ inFlight: 0, loads: { ok: 0, failed: 2 } })
  })

  test('whose caller has gone fails with that, which is no failure of the load', async () => {
    const { loads, loader, request, ask, tally } = batched()
    loader.onLoad = load => load.obey()
    const answers = ask('A')
    await promisesSettled()
    request.abort(HUNG_UP)
    await promisesSettled()
    expect(answers.fate).toEqual({ threw: HUNG_UP })
    expect(loads).toHaveLength(1)
    expect(tally).toMatchObject({ inFlight: 0, loads: { ok: 0, failed: 0 } })
  })

  test('whose caller has gone before it began asks nobody', async () => {
    const second = new StagedTier()
    const { loads, request, ask } = batched({}, { second })
    request.abort(HUNG_UP)
    const answers = ask('A')
    await promisesSettled()
    expect(answers.fate).toEqual({ threw: HUNG_UP })
    expect([loads.length, second.gets.length]).toEqual([0, 0])
  })

  test('of a loader that brings fewer answers than questions fails', async () => {
    const { loads, ask, tally } = batched()
    const answers = ask('A', 'B')
    await promisesSettled()
    loads[0]?.bring(1)
    await promisesSettled()
    expect(answers.fate).toEqual({ threw: expect.any(TypeError) })
    expect(tally).toMatchObject({ inFlight: 0, loads: { ok: 0, failed: 1 } })
  })

  test('gives answers that nobody can change, in a list that is the caller’s own', async () => {
    const { query, loads, run, ask } = batched()
    ask('A')
    await promisesSettled()
    loads[0]?.bring({ n: 1 })
    await promisesSettled()
    const answers = await query.readBatch(['A'], run)
    expect(Object.isFrozen(answers[0])).toBe(true)
    expect(Object.isFrozen(answers[0]?.value)).toBe(true)
    ;(answers as unknown[]).length = 0
    expect(await query.readBatch(['A'], run)).toHaveLength(1)
  })
})

describe('a batch before a second tier', () => {
  test('asks it for all that memory lacks at once, and loads what it lacks too, with its tickets', async () => {
    const second = new StagedTier()
    const { loads, ask, fill, tally } = batched({}, { second })
    const filling = fill('A', 1)
    second.gets[0]?.fail()
    await promisesSettled()
    await filling
    const answers = ask('A', 'B', 'C', 'D')
    expect(second.gets.slice(1).map(({ key }) => key)).toEqual(['B', 'C', 'D'])
    second.gets[1]?.say({ kind: 'found', text: '{"value":2}' })
    second.gets[2]?.say({ kind: 'missing', ticket: 'ticket of C' })
    second.gets[3]?.say({ kind: 'missing', ticket: 'ticket of D' })
    await promisesSettled()
    expect(loads.slice(1).map(({ asks }) => asks)).toEqual([['C', 'D']])
    loads[1]?.bring(3, undefined)
    await promisesSettled()
    expect(answers.fate).toEqual({ value: [1, 2, 3, undefined].map(value => ({ value })) })
    expect(second.puts.map(({ key, put }) => [key, put.ticket])).toEqual([
      ['C', 'ticket of C'],
      ['D', 'ticket of D'],
    ])
    expect(tally.l2).toEqual({ hit: 1, miss: 3, negative: 0 })
  })

  test('does not go back behind what landed while the tier was asked', async () => {
    const second = new StagedTier()
    const { query, loads, ask } = batched({}, { second })
    const answers = ask('A')
    const reading = query.read('A')
    second.gets[1]?.say({ kind: 'missing', ticket: 'ticket' })
    await promisesSettled()
    loads[0]?.bring('newer')
    await reading
    second.gets[0]?.say({ kind: 'found', text: '{"value":"older"}' })
    await promisesSettled()
    expect([answers.fate, query.peek('A')]).toEqual([{ value: [{ value: 'newer' }] }, { value: 'newer' }])
  })

  test('keeps nothing in memory that moved while the tier was asked', async () => {
    const second = new StagedTier()
    const { query, cache, ask } = batched({}, { second })
    ask('A', 'B')
    second.gets[0]?.say({ kind: 'found', text: '{"value":1}' })
    await promisesSettled()
    expect(query.peek('A')).toEqual({ value: 1 })
    cache.invalidate(['A', 'B'])
    second.invalidations[0]?.say()
    await promisesSettled()
    second.gets[1]?.say({ kind: 'found', text: '{"value":2}' })
    await promisesSettled()
    expect([query.peek('A'), query.peek('B')]).toEqual([undefined, undefined])
  })

  test.each(['lands', 'fails', 'is left by all'])(
    'puts nothing there that may come of the work of an older load, until that %s',
    async how => {
      const second = new StagedTier()
      const { cache, query, loads, ask } = batched({}, { second })
      const request = new AbortController()
      void watch(query.read('A', request.signal))
      second.gets[0]?.say({ kind: 'missing', ticket: 'older' })
      await promisesSettled()
      ask('A', 'B')
      for (const get of second.gets) get.say({ kind: 'missing', ticket: 'newer' })
      await promisesSettled()
      loads[1]?.bring(1, 2)
      await promisesSettled()
      expect(second.puts.map(({ key }) => key)).toEqual(['B'])
      if (how === 'lands') loads[0]?.bring(1)
      if (how === 'fails') loads[0]?.fail(NO_STORE)
      if (how === 'is left by all') request.abort(HUNG_UP)
      cache.invalidate(['A'])
      second.invalidations[0]?.say()
      await promisesSettled()
      ask('A')
      second.gets.at(-1)?.say({ kind: 'missing', ticket: 'latest' })
      await promisesSettled()
      loads[2]?.bring(3)
      await promisesSettled()
      expect(second.puts.at(-1)).toMatchObject({ key: 'A', put: { ticket: 'latest' } })
    },
  )

  test('keeps single reads of the same key from putting anything there, until it is over', async () => {
    const second = new StagedTier()
    const { cache, query, loads, ask } = batched({}, { second })
    const failing = ask('A')
    second.gets[0]?.say({ kind: 'missing', ticket: 'older' })
    await promisesSettled()
    for (const ticket of ['newer', 'newer still', 'latest']) {
      void watch(query.read('A'))
      second.gets.at(-1)?.say({ kind: 'missing', ticket })
      await promisesSettled()
      loads.at(-1)?.bring(ticket)
      await promisesSettled()
      expect(query.peek('A')).toEqual({ value: ticket })
      if (ticket === 'newer still') loads[0]?.fail(NO_STORE)
      cache.invalidate(['A'])
      second.invalidations.at(-1)?.say()
      await promisesSettled()
    }
    expect(failing.fate).toEqual({ threw: NO_STORE })
    expect(second.puts.map(({ put }) => put.ticket)).toEqual(['latest'])
  })

  test('whose caller goes meanwhile stops asking it, and loads nothing', async () => {
    const second = new StagedTier()
    const { clock, loads, request, ask } = batched({}, { second })
    const answers = ask('A')
    request.abort(HUNG_UP)
    await promisesSettled()
    expect(answers.fate).toEqual({ threw: HUNG_UP })
    expect(second.gets[0]?.signal?.aborted).toBe(true)
    expect([loads.length, clock.pendingTimers]).toEqual([0, 0])
  })
})
