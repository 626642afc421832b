import { describe, expect, test } from 'vitest'
import { promisesSettled } from '../support/virtual-clock.ts'
import { cached, watch } from './loads.ts'

const HUNG_UP = new Error('the client hung up')
const NO_STORE = new Error('no store')

// An entry is used for 20 s, and refreshed when it is read in the last 4 of them.
const AHEAD = { l1Seconds: 20, refreshAheadRatio: 0.2 }

async function filled(...[options, deps]: Parameters<typeof cached>) {
  const parts = cached({ ...AHEAD, ...options }, deps)
  await parts.fill('A', 'old')
  return parts
}

describe('an entry', () => {
  test('is loaded anew behind its reader, and only in the last refreshAheadRatio of its time', async () => {
    const { clock, query, loads, tally } = await filled()
    await clock.advanceAsync(15_999)
    expect(await query.read('A')).toBe('old')
    expect(loads).toHaveLength(1)
    await clock.advanceAsync(1)
    expect(await query.read('A')).toBe('old')
    expect(loads.map(({ asks }) => asks)).toEqual([['A'], ['A']])
    loads[1]?.bring('new')
    await promisesSettled()
    // Its time began anew, so it outlives the old one.
    await clock.advanceAsync(15_999)
    expect(await query.read('A')).toBe('new')
    expect(loads).toHaveLength(2)
    expect(tally).toMatchObject({ flights: { leader: 1, follower: 0 }, loads: { ok: 2 }, inFlight: 0 })
  })

  test('has one refresh at a time, however many read it meanwhile, and however near its end', async () => {
    const { clock, query, loads } = await filled()
    await clock.advanceAsync(19_900)
    for (let reads = 0; reads < 800; reads++) {
      query.peek('A')
      await clock.advanceAsync(0.1)
    }
    expect(loads).toHaveLength(2)
  })

  test('that ends early by chance is near its end early', async () => {
    const { clock, query, loads } = await filled({ jitterRatio: 0.5 }, { random: () => 0.5 })
    await clock.advanceAsync(11_999)
    query.peek('A')
    expect(loads).toHaveLength(1)
    await clock.advanceAsync(1)
    query.peek('A')
    expect(loads).toHaveLength(2)
  })

  test('is never loaded anew where refreshAheadRatio is 0, nor when it says that there is no such thing', async () => {
    const never = await filled({ refreshAheadRatio: 0 })
    await never.clock.advanceAsync(20_000)
    expect(await never.query.read('A')).toBe('old')
    expect(never.loads).toHaveLength(1)

    const negative = cached({ ...AHEAD, negativeSeconds: 2 })
    await negative.fill('A', undefined)
    await negative.clock.advanceAsync(2_000)
    expect(negative.query.peek('A')).toEqual({ value: undefined })
    expect(negative.loads).toHaveLength(1)
  })

  test('that turns out to be gone is remembered as such, for negativeSeconds', async () => {
    const { clock, query, loads } = await filled({ negativeSeconds: 2 })
    await clock.advanceAsync(16_000)
    query.peek('A')
    loads[1]?.bring(undefined)
    await promisesSettled()
    expect(query.peek('A')).toEqual({ value: undefined })
    await clock.advanceAsync(2_001)
    expect(query.peek('A')).toBeUndefined()
  })
})

describe('a refresh', () => {
  test('runs under no reader’s signal, for no request, and within the limits of a load', async () => {
    const { clock, query, loads, tally } = await filled()
    await clock.advanceAsync(16_000)
    const request = new AbortController()
    await query.read('A', request.signal)
    request.abort(HUNG_UP)
    expect(loads[1]?.run.signal.aborted).toBe(false)
    expect(loads[1]?.run.traceparent).toBeUndefined()
    expect(loads[1]?.run.endsAtMs).toBe(clock.nowMs() + 75)
    await clock.advanceAsync(75)
    expect(loads[1]?.run.signal.aborted).toBe(true)
    await clock.advanceAsync(15)
    expect(tally).toMatchObject({ inFlight: 0, loads: { ok: 1, timeout: 1 } })
  })

  test('serves who finds the entry gone meanwhile, and flies on when they all leave', async () => {
    const { clock, query, loads, tally } = await filled()
    await clock.advanceAsync(19_960)
    query.peek('A')
    await clock.advanceAsync(41)
    const request = new AbortController()
    const leaver = watch(query.read('A', request.signal))
    request.abort(HUNG_UP)
    await promisesSettled()
    expect(leaver.fate).toEqual({ threw: HUNG_UP })
    expect(loads[1]?.run.signal.aborted).toBe(false)
    const reader = watch(query.read('A'))
    loads[1]?.bring('new')
    await promisesSettled()
    expect(reader.fate).toEqual({ value: 'new' })
    expect(query.peek('A')).toEqual({ value: 'new' })
    expect(tally.flights).toEqual({ leader: 1, follower: 2 })
  })

  test('that fails is no reader’s error, and is tried again after half of what is left', async () => {
    const { clock, query, loads, loader, tally } = await filled()
    loader.onLoad = load => load.fail(NO_STORE)
    const triesAtMs: number[] = []
    for (let elapsedMs = 0; elapsedMs < 20_000; elapsedMs += 125) {
      const before = loads.length
      expect(await query.read('A')).toBe('old')
      if (loads.length > before) triesAtMs.push(elapsedMs)
      await clock.advanceAsync(125)
    }
    expect(triesAtMs).toEqual([16_000, 18_000, 19_000, 19_500, 19_750, 19_875])
    expect(tally.loads).toEqual({ ok: 1, failed: 6, timeout: 0, refused: 0 })
  })

  test('that began late and failed waits for half of what was left then', async () => {
    const { clock, query, loads, loader } = await filled()
    loader.onLoad = load => load.fail(NO_STORE)
    await clock.advanceAsync(19_000)
    query.peek('A')
    await clock.advanceAsync(499)
    query.peek('A')
    expect(loads).toHaveLength(2)
    await clock.advanceAsync(1)
    query.peek('A')
    expect(loads).toHaveLength(3)
  })

  test('that brings what only passes leaves the entry as it was', async () => {
    const { clock, query, loads } = await filled()
    await clock.advanceAsync(16_000)
    query.peek('A')
    loads[1]?.pass('remembered')
    await promisesSettled()
    expect(query.peek('A')).toEqual({ value: 'old' })
    await clock.advanceAsync(4_001)
    expect(query.peek('A')).toBeUndefined()
  })

  test.each([
    [1, 1],
    [8, 1],
    [9, 2],
    [64, 8],
  ])('has a budget of its own: beside %i loads there may be %i', async (maxConcurrentLoads, budget) => {
    const { clock, query, loads, fill } = cached({ ...AHEAD, maxConcurrentLoads })
    const keys = Array.from({ length: budget + 1 }, (_, index) => `K${index}`)
    for (const key of keys) await fill(key, 'old')
    await clock.advanceAsync(16_000)
    for (const key of keys) query.peek(key)
    const refreshes = loads.slice(keys.length)
    expect(refreshes).toHaveLength(budget)
    // All loads may still run beside them.
    const cold = Array.from({ length: maxConcurrentLoads }, (_, index) => watch(query.read(`cold ${index}`)))
    await promisesSettled()
    expect(cold.every(({ fate }) => fate === 'open')).toBe(true)

    // Whose turn did not come gets it as soon as there is room, by whatever way that came.
    refreshes[0]?.fail(NO_STORE)
    await promisesSettled()
    query.peek(keys.at(-1) ?? '')
    expect(loads.at(-1)?.asks).toEqual([keys.at(-1)])
  })
})
