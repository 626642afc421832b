import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { VERDICT } from '../../src/store/sqlite/protocol.ts'
import { never, orderWrite } from '../support/order-write.ts'
import { promisesSettled } from '../support/virtual-clock.ts'
import { CommitsBench, commit, orderIdsOf } from './commits-bench.ts'

describe('commits', () => {
  it('sends what one turn of the loop brought in one message, and the rest when that is answered', async () => {
    const bench = await CommitsBench.opened({ maxBatch: 3, maxPending: 8 })
    const writes = [commit(bench), commit(bench)]
    expect(bench.threads.requests).toEqual([])
    bench.clock.turn()
    expect(bench.threads.requests).toHaveLength(1)
    writes.push(commit(bench), commit(bench), commit(bench), commit(bench))
    bench.clock.turn()
    expect(bench.threads.requests).toHaveLength(1)
    const sent: unknown[] = []
    while (bench.threads.batch) {
      const { batch } = bench.threads
      const ids = orderIdsOf(batch)
      sent.push(...ids)
      bench.threads.answer(bench.created(bench.claim(ids.length)))
    }
    expect(sent).toEqual(writes.map(({ write }) => write.order.id))
    expect(await Promise.all(writes.map(({ done }) => done))).toEqual(Array(6).fill({ kind: 'created' }))
  })

  it('refuses what has no room', async () => {
    const bench = await CommitsBench.opened({ maxPending: 2 })
    const [, , third] = [commit(bench), commit(bench), commit(bench)]
    expect(await third?.done).toEqual({ kind: 'unavailable' })
    expect(third?.listeners()).toBe(0)
  })

  it('withdraws at once what is queued, and what is sent but not claimed', async () => {
    const bench = await CommitsBench.opened()
    const sent = commit(bench)
    bench.clock.turn()
    const queued = commit(bench)
    queued.abort()
    sent.abort()
    expect([await queued.done, await sent.done]).toEqual([{ kind: 'withdrawn' }, { kind: 'withdrawn' }])
    expect(bench.claim(1)).toEqual([false])
    bench.threads.answer([VERDICT.passedOver])
    expect(bench.threads.requests).toEqual([])
    expect(bench.late).toEqual([])
  })

  it('waits for a claimed write, and answers with the fact', async () => {
    const bench = await CommitsBench.opened({ settleGraceMs: 25 })
    const write = commit(bench)
    bench.clock.turn()
    const claimed = bench.claim(1)
    write.abort()
    await bench.clock.advanceAsync(24)
    expect(write.state.verdict).toBeUndefined()
    bench.threads.answer(bench.created(claimed))
    expect(await write.done).toEqual({ kind: 'created' })
    expect(bench.late).toEqual([])
    expect(bench.clock.pendingTimers).toBe(0)
  })

  it('calls a claimed write unknown after the grace, and a verdict after that changes nothing', async () => {
    const bench = await CommitsBench.opened({ settleGraceMs: 25 })
    const write = commit(bench)
    bench.clock.turn()
    const claimed = bench.claim(1)
    write.abort()
    await bench.clock.advanceAsync(25)
    expect(await write.done).toEqual({ kind: 'unknown' })
    bench.threads.answer(bench.created(claimed))
    expect(await write.done).toEqual({ kind: 'unknown' })
    expect(bench.late).toEqual(['created'])
  })

  it('gives each write of a group its own verdict', async () => {
    const bench = await CommitsBench.opened()
    const writes = [commit(bench), commit(bench), commit(bench), commit(bench)]
    bench.clock.turn()
    bench.claim(4)
    const held = ['0'.repeat(64), 201, '/v1/orders/x', 2, '{}']
    bench.threads.answer([VERDICT.taken, ...held, VERDICT.unavailable, VERDICT.outdated, VERDICT.created])
    expect(await Promise.all(writes.map(({ done }) => done))).toEqual([
      {
        kind: 'taken',
        reply: { fingerprint: '0'.repeat(64), status: 201, location: '/v1/orders/x', version: 2, json: '{}' },
      },
      { kind: 'unavailable' },
      { kind: 'outdated' },
      { kind: 'created' },
    ])
  })

  it('when the writer dies: claimed is unknown, all else unavailable, and nothing is taken until it is back', async () => {
    const bench = await CommitsBench.opened({ maxBatch: 2 })
    const [claimed, unclaimed] = [commit(bench), commit(bench)]
    bench.clock.turn()
    const queued = commit(bench)
    bench.claim(1)
    bench.threads.exit('out of luck')
    expect(await claimed.done).toEqual({ kind: 'unknown' })
    expect(await unclaimed.done).toEqual({ kind: 'unavailable' })
    expect(await queued.done).toEqual({ kind: 'unavailable' })
    expect(bench.commits.thread.fault).toBe('down')
    expect(bench.troubles).toEqual(['out of luck'])
    expect(await commit(bench).done).toEqual({ kind: 'unavailable' })

    await bench.clock.advanceAsync(50)
    expect(bench.threads.started).toBe(2)
    const early = commit(bench)
    expect(bench.commits.thread.fault).toBe('down')
    bench.threads.say({ kind: 'ready' })
    expect(bench.commits.thread.fault).toBeUndefined()
    bench.threads.answer(bench.created(bench.claim(1)))
    expect(await early.done).toEqual({ kind: 'created' })
    for (const write of [claimed, unclaimed, queued, early]) expect(write.listeners()).toBe(0)
  })

  it('tells a writer that dies overdue as unknown at once', async () => {
    const bench = await CommitsBench.opened({ settleGraceMs: 1_000 })
    const write = commit(bench)
    bench.clock.turn()
    bench.claim(1)
    write.abort()
    bench.threads.exit()
    expect(await write.done).toEqual({ kind: 'unknown' })
    expect(bench.late).toEqual([])
    await bench.commits.thread.close()
    expect(bench.clock.pendingTimers).toBe(0)
  })

  it('leaves nothing behind after 10,000 aborted commits', async () => {
    const warnings: unknown[] = []
    const onWarning = (warning: unknown) => warnings.push(warning)
    process.on('warning', onWarning)
    const bench = await CommitsBench.opened({ maxBatch: 64, maxPending: 64 })
    const shared = new AbortController().signal
    let listeners = 0
    const round = async () => {
      const writes = Array.from({ length: 50 }, () => commit(bench))
      void bench.commits.commit(orderWrite(), shared)
      for (const write of writes.slice(0, 15)) write.abort()
      bench.clock.turn()
      for (const write of writes.slice(15, 30)) write.abort()
      const claimed = bench.claim(36)
      for (const write of writes.slice(30)) write.abort()
      await bench.clock.advanceAsync(Math.random() < 0.5 ? 10 : 30)
      bench.threads.answer(bench.created(claimed))
      await Promise.all(writes.map(({ done }) => done))
      for (const write of writes) listeners += write.listeners()
    }
    for (let rounds = 0; rounds < 40; rounds++) await round()
    const beforeBytes = await heapBytes()
    for (let rounds = 0; rounds < 200; rounds++) await round()
    const grownBytes = (await heapBytes()) - beforeBytes
    process.off('warning', onWarning)
    expect({ listeners, timers: bench.clock.pendingTimers, warnings }).toEqual({
      listeners: 0,
      timers: 0,
      warnings: [],
    })
    expect(getEventListeners(shared, 'abort')).toEqual([])
    // 10,000 writes that stayed would be more than 5 MB.
    expect(grownBytes).toBeLessThan(1_000_000)
  })

  it('reports the transactions that made something, and how many writes did', async () => {
    const bench = await CommitsBench.opened()
    const committed: unknown[] = []
    bench.channels.committed.subscribe(message => committed.push(message))
    for (const values of [
      [VERDICT.created, VERDICT.passedOver, VERDICT.outdated],
      [VERDICT.unavailable],
      [VERDICT.outdated],
    ]) {
      for (const _ of values) commit(bench)
      bench.clock.turn()
      bench.clock.block(3)
      bench.threads.answer(values)
    }
    expect(committed).toEqual([{ durationMs: 3, batchSize: 1 }])
  })

  it('takes no notice of a signal that aborts after the verdict', async () => {
    const bench = await CommitsBench.opened()
    const write = commit(bench)
    bench.clock.turn()
    bench.threads.answer(bench.created(bench.claim(1)))
    write.abort()
    expect(await write.done).toEqual({ kind: 'created' })
    expect(bench.clock.pendingTimers).toBe(0)
    expect(await bench.commits.commit(orderWrite(), AbortSignal.abort())).toEqual({ kind: 'withdrawn' })
    void bench.commits.commit(orderWrite(), never())
    await promisesSettled()
  })
})

async function heapBytes(): Promise<number> {
  await promisesSettled()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
