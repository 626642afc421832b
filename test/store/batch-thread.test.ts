import { describe, expect, it } from 'vitest'
import { BatchThread } from '../../src/store/sqlite/batch-thread.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { FakeThreads } from './fake-threads.ts'

function setUp({ maxPending = 4 } = {}) {
  const clock = new VirtualClock()
  const threads = new FakeThreads()
  const log: string[] = []
  const thread = new BatchThread<string>({
    clock,
    maxBatch: 2,
    maxPending,
    start: threads.start,
    pack: batch => [...batch],
    settle: batch => log.push(`settled ${batch.join()}`),
    lost: batch => log.push(`lost ${batch.join()}`),
    refuse: item => log.push(`refused ${item}`),
    onHealth: () => log.push(`health ${thread.fault}`),
    onTrouble: reason => log.push(`trouble ${reason}`),
  })
  return { clock, threads, log, thread }
}

function opened(choices = {}) {
  const parts = setUp(choices)
  const opening = parts.thread.open()
  parts.threads.say({ kind: 'ready' })
  return { ...parts, opening }
}

describe('batch thread', () => {
  it('opens, or says why it cannot, and starts no second thread then', async () => {
    expect(await opened().opening).toBeUndefined()

    const { clock, threads, thread, log } = setUp()
    const opening = thread.open()
    threads.say({ kind: 'refused', reason: 'it is a folder', passing: undefined })
    threads.exit()
    expect(await opening).toBe('it is a folder')
    await clock.advanceAsync(60_000)
    expect(threads.started).toBe(1)
    expect(thread.offer('a')).toBe(false)
    await thread.close()
    expect(log).toEqual(['lost '])
  })

  it('opens without its thread where what is in its way may pass, and starts it again until it has', async () => {
    const { clock, threads, thread } = setUp()
    const opening = thread.open()
    threads.say({ kind: 'refused', reason: 'it is locked', passing: 'locked' })
    threads.exit()
    expect(await opening).toBeUndefined()
    expect([thread.fault, thread.offer('a')]).toEqual(['locked', false])
    for (let tries = 0; tries < 10; tries++) {
      const { started } = threads
      await clock.advanceAsync(250)
      expect(threads.started).toBe(started + 1)
      // It may take a while until it knows: nobody waits for that.
      expect(thread.offer('a')).toBe(false)
      threads.say({ kind: 'refused', reason: 'it is locked', passing: 'locked' })
      threads.exit()
    }
    await clock.advanceAsync(250)
    threads.say({ kind: 'ready' })
    expect([thread.fault, thread.offer('a')]).toEqual([undefined, true])
  })

  it('says how the first thread died', async () => {
    const { threads, thread } = setUp()
    const opening = thread.open()
    threads.exit('no such file')
    expect(await opening).toBe('no such file')
  })

  it('starts again after a pause that doubles up to 5 s, and from the beginning after work that was done', async () => {
    const { clock, threads, thread } = opened()
    const pausesMs: number[] = []
    const crash = async () => {
      const { started } = threads
      threads.exit()
      let pauseMs = 0
      for (; threads.started === started; pauseMs++) await clock.advanceAsync(1)
      pausesMs.push(pauseMs)
    }
    for (let crashes = 0; crashes < 9; crashes++) {
      await crash()
      if (crashes % 2) threads.say({ kind: 'ready' })
    }
    expect(pausesMs).toEqual([50, 100, 200, 400, 800, 1600, 3200, 5000, 5000])
    threads.say({ kind: 'ready' })
    thread.offer('a')
    clock.turn()
    threads.answer([])
    pausesMs.length = 0
    await crash()
    expect(pausesMs).toEqual([50])
  })

  it('reports each change of health once', () => {
    const { clock, threads, thread, log } = opened()
    for (const fault of ['locked', 'locked', 'full', undefined, undefined] as const) {
      thread.offer('a')
      clock.turn()
      threads.answer([], fault && { fault, reason: fault })
    }
    expect(log.filter(line => !line.startsWith('settled'))).toEqual([
      'trouble locked',
      'health locked',
      'trouble full',
      'health full',
      'health undefined',
    ])
  })

  it('asks a store with a fault whether it is over, without any traffic', async () => {
    const { clock, threads, thread } = opened()
    thread.offer('a')
    clock.turn()
    threads.answer([], { fault: 'locked' })
    for (let probes = 0; probes < 3; probes++) {
      await clock.advanceAsync(249)
      expect(threads.requests).toEqual([])
      await clock.advanceAsync(1)
      expect(threads.requests).toEqual([[]])
      threads.answer([], { fault: 'locked' })
    }
    await clock.advanceAsync(250)
    threads.answer([])
    expect(thread.fault).toBeUndefined()
    expect(clock.pendingTimers).toBe(0)
  })

  it('asks also while there is work that shows nothing, and not after work that does', async () => {
    const { clock, threads, thread } = opened()
    thread.offer('a')
    clock.turn()
    threads.answer([], { fault: 'locked' })
    // A relay looks for events more often than this asks.
    for (let polls = 0; polls < 2; polls++) {
      await clock.advanceAsync(100)
      thread.offer('b')
      clock.turn()
      expect(threads.requests).toEqual([['b']])
      threads.answer([], { proven: false })
    }
    await clock.advanceAsync(50)
    expect(threads.requests).toEqual([[]])
    threads.answer([], { fault: 'locked' })
    thread.offer('c')
    clock.turn()
    threads.answer([])
    expect(thread.fault).toBeUndefined()
    expect(clock.pendingTimers).toBe(0)
  })

  it('finishes what it took before it closes', async () => {
    const { clock, threads, thread, log } = opened()
    for (const item of ['a', 'b', 'c']) thread.offer(item)
    const closed = thread.close()
    expect(thread.offer('d')).toBe(false)
    clock.turn()
    threads.answer([])
    threads.answer([])
    expect(threads.requests).toEqual(['close'])
    threads.exit()
    await closed
    await thread.close()
    expect(log).toEqual(['settled a,b', 'settled c', 'lost '])
  })

  it('closes at once while it is down, and when the thread dies closing', async () => {
    const down = opened()
    down.threads.exit()
    await down.thread.close()
    expect(down.clock.pendingTimers).toBe(0)

    const faulty = opened()
    faulty.thread.offer('a')
    faulty.clock.turn()
    faulty.thread.offer('b')
    const closed = faulty.thread.close()
    faulty.threads.exit()
    await closed
    expect(faulty.log).toEqual(['lost a', 'refused b'])
    expect(faulty.threads.started).toBe(1)
    expect(faulty.clock.pendingTimers).toBe(0)
  })

  it('closes before it was ever opened, and while it waits to probe', async () => {
    await setUp().thread.close()
    const { clock, threads, thread } = opened()
    thread.offer('a')
    clock.turn()
    threads.answer([], { fault: 'full' })
    const closed = thread.close()
    threads.exit()
    await closed
    expect(clock.pendingTimers).toBe(0)
  })

  it('takes no step that its state machine does not know', async () => {
    const { threads } = opened()
    expect(() => threads.answer([])).toThrow(TypeError)
    expect(() => threads.say({ kind: 'ready' })).toThrow(TypeError)
    await promisesSettled()
  })
})
