import { describe, expect, test } from 'vitest'
import { Flight, type FlightResult } from '../../src/cache/flight.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { type Watched, watch } from './loads.ts'

const LIMITS = { waitTimeoutMs: 100, loadTimeoutMs: 90, queryTimeoutMs: 75 }
const HUNG_UP = new Error('the client hung up')

function flown({ pinned = false, limits = LIMITS, earlyMs = (): number => 0 } = {}) {
  const clock = new VirtualClock({ earlyMs })
  const ends: FlightResult[] = []
  const counts = { waitTimeouts: 0 }
  const flight = new Flight<unknown>(0, {
    clock,
    limits,
    pinned,
    onEnd: result => ends.push(result),
    onWaitTimeout: () => counts.waitTimeouts++,
  })
  const join = (signal?: AbortSignal) => watch(flight.join(signal))
  return { clock, flight, ends, counts, join }
}

const failure = (kind: string) => ({ threw: expect.objectContaining({ name: 'CacheFailure', kind }) })
const fates = (waiters: readonly Watched[]) => waiters.map(({ fate }) => fate)

describe('a flight', () => {
  test('gives all its waiters what it loaded, and hears nothing that comes later', async () => {
    const { flight, ends, join } = flown()
    const waiters = [join(), join(new AbortController().signal)]
    flight.startLoad(1)
    flight.land(7)
    flight.land(8)
    flight.fail(new Error('late'))
    await promisesSettled()
    expect(fates(waiters)).toEqual([{ value: 7 }, { value: 7 }])
    expect(ends).toEqual(['ok'])
    expect(flight.ended).toBe(true)
  })

  test.each([
    ['an error', new Error('no store')],
    ['null', null],
    ['undefined', undefined],
    ['a text', 'no store'],
  ])('that fails with %s tells all its waiters exactly that', async (_name, thrown) => {
    const { flight, ends, join } = flown()
    const waiters = [join(), join()]
    flight.startLoad(1)
    flight.fail(thrown)
    await promisesSettled()
    for (const waiter of waiters) expect((waiter.fate as { threw: unknown }).threw).toBe(thrown)
    expect(ends).toEqual(['failed'])
  })

  test('is over before anyone is told, so that who asks again at once finds it gone', async () => {
    const clock = new VirtualClock()
    const order: string[] = []
    const flight = new Flight<number>(0, {
      clock,
      limits: LIMITS,
      pinned: false,
      onEnd: () => order.push('ended'),
      onWaitTimeout: () => {},
    })
    const told = flight.join(undefined).then(() => order.push('told'))
    flight.land(1)
    await told
    expect(order).toEqual(['ended', 'told'])
  })

  test('is stamped when its query starts, which is when its limits start to run', async () => {
    const { clock, flight, ends, join } = flown({ limits: { ...LIMITS, waitTimeoutMs: 1_000 } })
    join()
    await clock.advanceAsync(200)
    expect(ends).toEqual([])
    expect([flight.stamp, flight.loading]).toEqual([0, false])
    expect(flight.startLoad(5)).toBe(clock.nowMs() + 75)
    expect([flight.stamp, flight.loading]).toEqual([5, true])
    await clock.advanceAsync(90)
    expect(ends).toEqual(['timeout'])
  })
})

describe('who leaves a flight', () => {
  test('by its signal is told so at once, and cancels nothing for the others', async () => {
    const { flight, join } = flown()
    const request = new AbortController()
    const [leaver, other] = [join(request.signal), join()]
    flight.startLoad(1)
    request.abort(HUNG_UP)
    await promisesSettled()
    expect(fates([leaver, other])).toEqual([{ threw: HUNG_UP }, 'open'])
    expect(flight.signal.aborted).toBe(false)
    flight.land(7)
    await promisesSettled()
    expect(other.fate).toEqual({ value: 7 })
  })

  test('last of all aborts the load with its reason', async () => {
    const { clock, flight, ends, join } = flown()
    const request = new AbortController()
    join(request.signal)
    flight.startLoad(1)
    request.abort(HUNG_UP)
    expect(flight.signal.reason).toBe(HUNG_UP)
    expect(ends).toEqual(['cancelled'])
    flight.fail(HUNG_UP)
    expect(ends).toEqual(['cancelled'])
    expect(clock.pendingTimers).toBe(0)
  })

  test('last of all leaves a pinned one to fly on, to its own limits', async () => {
    const { clock, flight, ends, join } = flown({ pinned: true })
    const request = new AbortController()
    const leaver = join(request.signal)
    flight.startLoad(1)
    request.abort(HUNG_UP)
    await promisesSettled()
    expect(leaver.fate).toEqual({ threw: HUNG_UP })
    expect([flight.ended, flight.signal.aborted]).toEqual([false, false])
    await clock.advanceAsync(90)
    expect(ends).toEqual(['timeout'])
  })

  test('by its own patience ends only its own wait, a fixed time after it came', async () => {
    const { clock, flight, counts, join } = flown({
      limits: { ...LIMITS, loadTimeoutMs: 1_000, queryTimeoutMs: 900 },
    })
    const first = join()
    flight.startLoad(1)
    await clock.advanceAsync(60)
    const second = join()
    await clock.advanceAsync(39)
    expect(fates([first, second])).toEqual(['open', 'open'])
    await clock.advanceAsync(1)
    expect(fates([first, second])).toEqual([failure('wait-timeout'), 'open'])
    expect([flight.ended, counts.waitTimeouts]).toEqual([false, 1])
    await clock.advanceAsync(60)
    expect(second.fate).toEqual(failure('wait-timeout'))
    expect(counts.waitTimeouts).toBe(2)
    // It was the last one, so that nobody wants the load any more.
    expect(flight.signal.aborted).toBe(true)
  })

  test('before it came takes no part', async () => {
    const { clock, flight, join } = flown()
    const late = join(AbortSignal.abort(HUNG_UP))
    await promisesSettled()
    expect(late.fate).toEqual({ threw: HUNG_UP })
    expect([flight.ended, clock.pendingTimers]).toEqual([false, 0])
  })
})

describe('the limits of a load', () => {
  test('first abort its signal, and then fail all who wait, whatever the loader does', async () => {
    const { clock, flight, ends, join } = flown()
    const waiters = [join(), join()]
    flight.startLoad(1)
    await clock.advanceAsync(74)
    expect(flight.signal.aborted).toBe(false)
    await clock.advanceAsync(1)
    expect(flight.signal.reason).toMatchObject({ name: 'CacheFailure', kind: 'load-timeout' })
    waiters.push(join())
    await clock.advanceAsync(14)
    expect(ends).toEqual([])
    await clock.advanceAsync(1)
    expect(fates(waiters)).toEqual([
      failure('load-timeout'),
      failure('load-timeout'),
      failure('load-timeout'),
    ])
    expect(ends).toEqual(['timeout'])
    expect(clock.pendingTimers).toBe(0)
  })

  test('are not met before their moments, though timers fire early', async () => {
    let timers = 0
    const { clock, flight, ends, join } = flown({ earlyMs: () => (timers++ % 2 === 0 ? 1.9 : 0) })
    join()
    flight.startLoad(1)
    await clock.advanceAsync(74.9)
    expect(flight.signal.aborted).toBe(false)
    await clock.advanceAsync(2)
    expect(flight.signal.aborted).toBe(true)
    await clock.advanceAsync(13)
    expect(ends).toEqual([])
    await clock.advanceAsync(2)
    expect(ends).toEqual(['timeout'])
  })

  test('count a loader that gives up when it is told to as one that ran into them', async () => {
    const { clock, flight, ends, join } = flown()
    const waiter = join()
    flight.startLoad(1)
    flight.signal.addEventListener('abort', () => flight.fail(flight.signal.reason))
    await clock.advanceAsync(75)
    expect(waiter.fate).toEqual(failure('load-timeout'))
    expect(ends).toEqual(['timeout'])
  })

  test('let an answer through that came in time, however late a busy loop reads it', async () => {
    const { clock, flight, ends, join } = flown()
    const waiter = join()
    flight.startLoad(1)
    clock.block(500)
    clock.turn(() => flight.land(7))
    await promisesSettled()
    expect(waiter.fate).toEqual({ value: 7 })
    expect(ends).toEqual(['ok'])
  })

  test('stop the load even where a busy loop meets both of them at once', async () => {
    const { clock, flight, ends, join } = flown()
    join()
    flight.startLoad(1)
    clock.block(500)
    clock.turn()
    expect(ends).toEqual(['timeout'])
    expect(flight.signal.aborted).toBe(true)
  })
})
