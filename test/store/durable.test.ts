import { describe, expect, it } from 'vitest'
import { VERDICT } from '../../src/store/sqlite/protocol.ts'
import { promisesSettled } from '../support/virtual-clock.ts'
import { CommitsBench, commit } from './commits-bench.ts'

describe('the durable hook', () => {
  it('runs with the answer itself, before any promise can', async () => {
    const bench = await CommitsBench.opened()
    const write = commit(bench)
    bench.clock.turn()
    bench.threads.answer(bench.created(bench.claim(1)))
    expect(write.state).toEqual({ durable: 1 })
    await promisesSettled()
    expect(write.state).toEqual({ durable: 1, verdict: 'created' })
  })

  it('runs for each of a group that is durable, and for no other', async () => {
    const bench = await CommitsBench.opened({ maxBatch: 5 })
    const writes = [commit(bench), commit(bench), commit(bench), commit(bench), commit(bench)]
    bench.clock.turn()
    writes[4]?.abort()
    bench.claim(5)
    const { created, taken, unavailable, outdated, passedOver } = VERDICT
    const held = ['0'.repeat(64), 201, '/v1/orders/x', 1, '{}']
    bench.threads.answer([outdated, taken, ...held, created, unavailable, passedOver])
    await promisesSettled()
    expect(writes.map(({ state }) => state)).toEqual([
      { durable: 0, verdict: 'outdated' },
      { durable: 0, verdict: 'taken' },
      { durable: 1, verdict: 'created' },
      { durable: 0, verdict: 'unavailable' },
      { durable: 0, verdict: 'withdrawn' },
    ])
  })

  it('runs when the verdict comes after its caller was told unknown', async () => {
    const bench = await CommitsBench.opened({ settleGraceMs: 25 })
    const writes = [commit(bench), commit(bench)]
    bench.clock.turn()
    bench.claim(2)
    for (const write of writes) write.abort()
    await bench.clock.advanceAsync(25)
    expect(writes.map(({ state }) => state)).toEqual(Array(2).fill({ durable: 0, verdict: 'unknown' }))
    bench.threads.answer([VERDICT.created, VERDICT.unavailable])
    expect(writes.map(({ state }) => state.durable)).toEqual([1, 0])
  })

  it('runs when the writer is lost with the write claimed, and not when it was not', async () => {
    const bench = await CommitsBench.opened({ maxBatch: 4, settleGraceMs: 25 })
    const [told, waits, unclaimed, takenBack] = [commit(bench), commit(bench), commit(bench), commit(bench)]
    bench.clock.turn()
    const queued = commit(bench)
    takenBack.abort()
    bench.claim(2)
    told.abort()
    await bench.clock.advanceAsync(25)
    expect(told.state).toEqual({ durable: 0, verdict: 'unknown' })
    bench.threads.exit()
    expect([told, waits, unclaimed, takenBack, queued].map(({ state }) => state.durable)).toEqual([
      1, 1, 0, 0, 0,
    ])
    expect(await waits.done).toEqual({ kind: 'unknown' })
    await bench.clock.advanceAsync(50)
    bench.threads.say({ kind: 'ready' })
    expect(told.state.durable).toBe(1)
  })

  it.each([
    ['answers', 1],
    ['is lost', 1],
  ])('runs during a close when the writer %s', async (how, times) => {
    const bench = await CommitsBench.opened({ settleGraceMs: 25 })
    const write = commit(bench)
    bench.clock.turn()
    const claimed = bench.claim(1)
    write.abort()
    await bench.clock.advanceAsync(25)
    const closed = bench.commits.thread.close()
    if (how === 'answers') bench.threads.answer(bench.created(claimed))
    bench.threads.exit()
    expect(write.state).toEqual({ durable: times, verdict: 'unknown' })
    await closed
  })

  it('that throws is reported, and takes no verdict from anybody', async () => {
    const bench = await CommitsBench.opened()
    const thrown = [new TypeError('out of\n  luck'), Object.create(null), 'words']
    const writes = thrown.map(error =>
      commit(bench, () => {
        throw error
      }),
    )
    writes.push(commit(bench))
    bench.clock.turn()
    bench.threads.answer(bench.created(bench.claim(4)))
    await promisesSettled()
    expect(writes.map(({ state }) => state)).toEqual(Array(4).fill({ durable: 1, verdict: 'created' }))
    expect(bench.troubles).toEqual([
      'what follows a durable write failed: out of luck',
      'what follows a durable write failed: [Object: null prototype] {}',
      "what follows a durable write failed: 'words'",
    ])
  })

  it('that throws while the writer is lost leaves nobody without a verdict', async () => {
    const bench = await CommitsBench.opened({ maxBatch: 2 })
    const writes = [
      commit(bench, () => {
        throw new Error('no')
      }),
      commit(bench),
    ]
    bench.clock.turn()
    writes.push(commit(bench))
    bench.claim(2)
    bench.threads.exit('a crash')
    await promisesSettled()
    expect(writes.map(({ state }) => state)).toEqual([
      { durable: 1, verdict: 'unknown' },
      { durable: 1, verdict: 'unknown' },
      { durable: 0, verdict: 'unavailable' },
    ])
    expect(bench.troubles).toEqual(['a crash', 'what follows a durable write failed: no'])
  })

  it('may abort its own and other signals', async () => {
    const bench = await CommitsBench.opened()
    const writes: ReturnType<typeof commit>[] = []
    const abortAll = () => {
      for (const { abort } of writes) abort()
    }
    writes.push(commit(bench, abortAll), commit(bench, abortAll))
    bench.clock.turn()
    const claimed = bench.claim(2)
    writes.push(commit(bench))
    bench.threads.answer(bench.created(claimed))
    await promisesSettled()
    expect(writes.map(({ state }) => state)).toEqual([
      { durable: 1, verdict: 'created' },
      { durable: 1, verdict: 'created' },
      { durable: 0, verdict: 'withdrawn' },
    ])
    expect(bench.clock.pendingTimers).toBe(0)
  })
})
