import { getEventListeners } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { TierGate } from '../../src/cache/tier-gate.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { watch } from './loads.ts'
import { StagedTier } from './staged-tier.ts'

function gated() {
  const clock = new VirtualClock()
  const tier = new StagedTier()
  const gate = new TierGate(tier, clock)
  const put = (...tags: string[]) => gate.put('key', '{}', { tags, ttlMs: 1_000, ticket: 't' })
  return { clock, tier, gate, put }
}

/** More tags than a gate can hold. */
const FLOOD = Array.from({ length: 16_385 }, (_, index) => `tag ${index}`)

describe('a tag', () => {
  test('is unsettled from its invalidation on, until the tier confirms it: neither looked up nor filled', async () => {
    const { tier, gate, put } = gated()
    gate.invalidate(['a', 'b'])
    expect([gate.isOpenFor(['a']), gate.isOpenFor(['c', 'b']), gate.isOpenFor(['c'])]).toEqual([
      false,
      false,
      true,
    ])
    put('c', 'b')
    expect(tier.puts).toHaveLength(0)
    put('c')
    expect(tier.puts).toHaveLength(1)
    expect(tier.invalidations.map(({ tags }) => tags)).toEqual([['a', 'b']])
    tier.invalidations[0]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['a', 'b'])).toBe(true)
    put('a', 'b')
    expect(tier.puts).toHaveLength(2)
  })

  test('that goes out of date while the tier is asked about it has to be confirmed again', async () => {
    const { tier, gate } = gated()
    gate.invalidate(['a'])
    gate.invalidate(['a'])
    gate.invalidate(['b'])
    expect(tier.invalidations).toHaveLength(1)
    tier.invalidations[0]?.say()
    await promisesSettled()
    // One question at a time; what came meanwhile goes with the next.
    expect(tier.invalidations.map(({ tags }) => tags)).toEqual([['a'], ['a', 'b']])
    expect(gate.isOpenFor(['a'])).toBe(false)
    tier.invalidations[1]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['a', 'b'])).toBe(true)
  })

  test('that the tier does not confirm is asked for again, with twice the pause each time up to 5 s', async () => {
    const { clock, tier, gate } = gated()
    const askedAtMs: number[] = []
    const startMs = clock.nowMs()
    const asked = () => {
      askedAtMs.push(clock.nowMs() - startMs)
      throw new Error('no connection')
    }
    tier.onCall = asked
    gate.invalidate(['a'])
    await clock.advanceAsync(20_000)
    const pauses = askedAtMs.slice(1).map((atMs, index) => atMs - (askedAtMs[index] ?? 0))
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
    expect(gate.isOpenFor(['a'])).toBe(false)

    // Confirmed at last, and the next trouble starts with a short pause.
    tier.onCall = () => {}
    await clock.advanceAsync(1_350)
    tier.invalidations[0]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['a'])).toBe(true)
    tier.onCall = asked
    gate.invalidate(['b'])
    askedAtMs.length = 0
    await clock.advanceAsync(50)
    expect(askedAtMs).toHaveLength(1)
  })

  test('that moves in a pause waits for its end, so that a tier in trouble is not asked more often', async () => {
    const { clock, tier, gate } = gated()
    gate.invalidate(['a'])
    tier.invalidations[0]?.fail()
    await promisesSettled()
    for (let times = 0; times < 100; times++) gate.invalidate([`b${times}`])
    expect(tier.invalidations).toHaveLength(1)
    await clock.advanceAsync(50)
    expect(tier.invalidations[1]?.tags).toHaveLength(101)
  })

  test('is not believed to be settled by a confirmation that comes too late', async () => {
    const { clock, tier, gate } = gated()
    gate.invalidate(['a'])
    await clock.advanceAsync(tier.timeoutMs)
    tier.invalidations[0]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['a'])).toBe(false)
    await clock.advanceAsync(50)
    tier.invalidations[1]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['a'])).toBe(true)
  })
})

describe('the gate', () => {
  test('is shut by more unsettled tags than it can hold, until the tier confirms that it forgot everything', async () => {
    const { tier, gate, put } = gated()
    gate.invalidate(FLOOD.slice(1))
    expect(gate.isOpenFor(['other'])).toBe(true)
    gate.invalidate(FLOOD.slice(0, 1))
    expect(gate.isOpenFor(['other'])).toBe(false)
    put('other')
    expect(tier.puts).toHaveLength(0)
    // What was asked before settles nothing any more.
    tier.invalidations[0]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['other'])).toBe(false)
    expect([tier.invalidations.length, tier.clears.length]).toEqual([1, 1])
    tier.clears[0]?.say()
    await promisesSettled()
    expect(gate.isOpenFor([...FLOOD, 'other'])).toBe(true)
  })

  test('when shut asks again as it does for a tag', async () => {
    const { clock, tier, gate } = gated()
    gate.shut()
    tier.clears[0]?.fail()
    await clock.advanceAsync(50)
    await clock.advanceAsync(tier.timeoutMs)
    await clock.advanceAsync(100)
    expect(tier.clears).toHaveLength(3)
    expect(gate.isOpenFor([])).toBe(false)
    tier.clears[2]?.say()
    await promisesSettled()
    expect(gate.isOpenFor([])).toBe(true)
  })

  test('is not opened by a clear that began before something moved, for what moved', async () => {
    const { tier, gate } = gated()
    gate.shut()
    gate.invalidate(['late'])
    tier.clears[0]?.say()
    await promisesSettled()
    expect([gate.isOpenFor(['other']), gate.isOpenFor(['late'])]).toEqual([true, false])
    tier.invalidations[0]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['late'])).toBe(true)
  })

  test('is not opened by a clear that began before everything moved once more', async () => {
    const { tier, gate } = gated()
    gate.shut()
    gate.invalidate(FLOOD)
    tier.clears[0]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['other'])).toBe(false)
    tier.clears[1]?.say()
    await promisesSettled()
    expect(gate.isOpenFor(['other'])).toBe(true)
  })

  test('closed in a pause leaves no timer', async () => {
    const { clock, tier, gate } = gated()
    gate.invalidate(['a'])
    tier.invalidations[0]?.fail()
    await promisesSettled()
    expect(clock.pendingTimers).toBe(1)
    gate.close()
    expect(clock.pendingTimers).toBe(0)
  })

  test.each(['confirms', 'hangs'])(
    'closed while it is asked asks no more, whether the tier %s',
    async how => {
      const { clock, tier, gate } = gated()
      gate.invalidate(['a'])
      gate.close()
      gate.invalidate(['b'])
      if (how === 'confirms') tier.invalidations[0]?.say()
      await clock.advanceAsync(tier.timeoutMs)
      expect(clock.pendingTimers).toBe(0)
      gate.invalidate(['c'])
      await clock.advanceAsync(60_000)
      expect(tier.invalidations).toHaveLength(1)
    },
  )

  test('takes no harm from a put that fails, in whatever way', async () => {
    const { tier, put } = gated()
    const rejections: unknown[] = []
    const collect = (reason: unknown) => void rejections.push(reason)
    process.on('unhandledRejection', collect)
    onTestFinished(() => void process.off('unhandledRejection', collect))
    tier.onCall = () => {
      throw new Error('no connection')
    }
    expect(() => put('a')).not.toThrow()
    tier.onCall = () => {}
    tier.put = () => Promise.reject(new Error('no connection'))
    put('a')
    await promisesSettled()
    expect(rejections).toEqual([])
  })
})

describe('a look into the tier', () => {
  const MISSING = { kind: 'missing', ticket: 't' } as const

  test('gets what the tier says in time, and leaves nothing behind', async () => {
    const { clock, tier, gate } = gated()
    const { signal } = new AbortController()
    const answer = watch(gate.get('key', ['a'], signal))
    await clock.advanceAsync(tier.timeoutMs - 1)
    tier.gets[0]?.say(MISSING)
    await promisesSettled()
    expect(tier.gets[0]).toMatchObject({ key: 'key', tags: ['a'] })
    expect(answer.fate).toEqual({ value: MISSING })
    expect([clock.pendingTimers, getEventListeners(signal, 'abort').length]).toEqual([0, 0])
  })

  test.each([
    ['fails', (tier: StagedTier) => tier.gets[0]?.fail()],
    ['says nonsense', (tier: StagedTier) => tier.gets[0]?.say(undefined as never)],
  ])('gets nothing from a tier that %s', async (_name, act) => {
    const { clock, tier, gate } = gated()
    const answer = watch(gate.get('key', ['a'], new AbortController().signal))
    act(tier)
    await promisesSettled()
    expect(answer.fate).toEqual({ value: undefined })
    expect(clock.pendingTimers).toBe(0)
  })

  test('gets nothing from a tier that throws', async () => {
    const { tier, gate } = gated()
    tier.onCall = () => {
      throw new Error('no connection')
    }
    expect(await gate.get('key', ['a'], new AbortController().signal)).toBeUndefined()
  })

  test('gives up after timeoutMs, tells the tier, and does not hear what comes then', async () => {
    const { clock, tier, gate } = gated()
    const { signal } = new AbortController()
    const answer = watch(gate.get('key', ['a'], signal))
    await clock.advanceAsync(tier.timeoutMs)
    expect(answer.fate).toEqual({ value: undefined })
    expect(tier.gets[0]?.signal?.aborted).toBe(true)
    tier.gets[0]?.say(MISSING)
    await promisesSettled()
    expect(answer.fate).toEqual({ value: undefined })
    expect([clock.pendingTimers, getEventListeners(signal, 'abort').length]).toEqual([0, 0])
  })

  test('ends with its caller, and tells the tier', async () => {
    const { clock, tier, gate } = gated()
    const request = new AbortController()
    const answer = watch(gate.get('key', ['a'], request.signal))
    request.abort()
    await promisesSettled()
    expect(answer.fate).toEqual({ value: undefined })
    expect(tier.gets[0]?.signal?.aborted).toBe(true)
    expect(clock.pendingTimers).toBe(0)
  })

  test('gets nothing when a tag went out of date meanwhile', async () => {
    const { tier, gate } = gated()
    const answer = watch(gate.get('key', ['a'], new AbortController().signal))
    gate.invalidate(['a'])
    tier.gets[0]?.say(MISSING)
    await promisesSettled()
    expect(answer.fate).toEqual({ value: undefined })
  })
})
