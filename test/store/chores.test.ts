import { describe, expect, it } from 'vitest'
import { type Flat, ITEM, VERDICT } from '../../src/store/sqlite/protocol.ts'
import { CommitsBench, commit, orderIdsOf } from './commits-bench.ts'

const CHORE: Flat = [ITEM.handBack, 1]

describe('chores', () => {
  it('go in one group with orders, each with an answer of its own', async () => {
    const bench = await CommitsBench.opened({ maxBatch: 8 })
    const one = commit(bench)
    const claim = bench.commits.run([ITEM.claim, 200, 1_000, 5])
    const two = commit(bench)
    const settle = bench.commits.run([ITEM.settle, 7, '[]', '[]'])
    const three = commit(bench)
    bench.clock.turn()
    const { batch = [] } = bench.threads
    expect(orderIdsOf(batch)).toEqual([one, two, three].map(({ write }) => write.order.id))
    expect(batch.slice(16, 20)).toEqual([ITEM.claim, 200, 1_000, 5])
    expect(bench.claim(5)).toEqual(Array(5).fill(true))
    const { created, done, unavailable } = VERDICT
    bench.threads.answer([created, done, 3, 7, 1, 200, unavailable, done, 0, created])
    expect(await Promise.all([claim, settle])).toEqual([[7, 1, 200], []])
    expect((await Promise.all([one.done, two.done, three.done])).map(({ kind }) => kind)).toEqual([
      'created',
      'unavailable',
      'created',
    ])
  })

  it('cannot be told when the writer refuses, is down or dies with them', async () => {
    const bench = await CommitsBench.opened()
    const refused = bench.commits.run(CHORE)
    bench.clock.turn()
    bench.threads.answer([VERDICT.unavailable], { fault: 'locked' })
    expect(await refused).toBeUndefined()
    const sent = bench.commits.run(CHORE)
    bench.clock.turn()
    bench.claim(1)
    const queued = bench.commits.run(CHORE)
    bench.threads.exit()
    expect(await Promise.all([sent, queued, bench.commits.run(CHORE)])).toEqual(Array(3).fill(undefined))
    await bench.commits.thread.close()
    expect(await bench.commits.run(CHORE)).toBeUndefined()
    expect(bench.clock.pendingTimers).toBe(0)
  })

  it('take no place of an order, and orders none of theirs', async () => {
    const bench = await CommitsBench.opened({ maxBatch: 64, maxPending: 3 })
    const run = () => bench.commits.run(CHORE).then(answer => answer ?? 'refused')
    const chores = Array.from({ length: 10 }, run)
    const orders = Array.from({ length: 4 }, () => commit(bench))
    chores.push(...Array.from({ length: 7 }, run))
    bench.clock.turn()
    const { batch = [] } = bench.threads
    expect(orderIdsOf(batch)).toEqual(orders.slice(0, 3).map(({ write }) => write.order.id))
    expect(await orders[3]?.done).toEqual({ kind: 'unavailable' })
    // Orders that are sent make room for others; chores keep theirs until they end.
    const next = commit(bench)
    const tooMany = run()
    const answers = (count: number): Flat => Array(count).fill([VERDICT.done, 1, 0]).flat()
    bench.threads.answer([...answers(10), ...Array(3).fill(VERDICT.created), ...answers(6)])
    expect(await Promise.all(chores)).toEqual([...Array(16).fill([0]), 'refused'])
    expect(await tooMany).toBe('refused')
    bench.threads.answer([VERDICT.created])
    expect(await next.done).toEqual({ kind: 'created' })
    const after = Array.from({ length: 16 }, run)
    bench.clock.turn()
    bench.threads.answer(answers(16))
    expect(await Promise.all(after)).toEqual(Array(16).fill([0]))
  })

  it('leaves every place free that was taken back or lost', async () => {
    const bench = await CommitsBench.opened({ maxPending: 2 })
    for (let rounds = 0; rounds < 5; rounds++) {
      const orders = [commit(bench), commit(bench)]
      for (const order of orders) order.abort()
      for (const order of orders) expect(await order.done).toEqual({ kind: 'withdrawn' })
    }
    const sent = commit(bench)
    bench.clock.turn()
    const queued = [commit(bench), commit(bench)]
    bench.threads.exit()
    for (const order of [sent, ...queued]) expect(await order.done).toEqual({ kind: 'unavailable' })
    await bench.clock.advanceAsync(50)
    bench.threads.say({ kind: 'ready' })
    const orders = [commit(bench), commit(bench), commit(bench)]
    bench.clock.turn()
    bench.threads.answer(bench.created(bench.claim(2)))
    expect((await Promise.all(orders.map(({ done }) => done))).map(({ kind }) => kind)).toEqual([
      'created',
      'created',
      'unavailable',
    ])
  })
})
