import { expect, it } from 'vitest'
import type { PurgeAsk, Purged } from '../../../src/store/index.ts'
import { dead, eventIds, type OutboxUnderTest, retry } from '../../contracts/outbox.contract.ts'
import { cancelWrite, never, orderWrite } from '../../support/order-write.ts'

/** How many each step deletes, one row a step. */
async function wholePass(purge: (ask: PurgeAsk) => Promise<Purged | undefined>): Promise<number[]> {
  const deleted: number[] = []
  for (let after: number | undefined = 0; after !== undefined; ) {
    const purged: Purged | undefined = await purge({ atMs: 100, madeBeforeMs: 50, limit: 1, after })
    if (purged === undefined) throw new Error('unavailable')
    deleted.push(purged.deleted)
    after = purged.next
  }
  return deleted
}

/** What is deleted, and what never is. */
export function purgeContract(tested: OutboxUnderTest): void {
  const rows = async () => (await tested.harness.rows()).events

  it('deletes delivered events that are old enough, at most so many at once', async () => {
    for (let atMs = 1; atMs <= 6; atMs++) await tested.create({ atMs })
    const { token } = await tested.claim()
    await tested.settle(token)
    const { outbox } = tested.store
    const steps: unknown[] = []
    let after = 0
    for (const [madeBeforeMs, limit] of [
      [1, 10],
      [5, 3],
      [5, 2],
      [5, 10],
      [7, 6],
      [7, 10],
    ] as const) {
      const purged = await outbox.purgeDelivered({ atMs: 100, madeBeforeMs, limit, after })
      steps.push([purged?.deleted, purged?.next === undefined ? 'end' : 'on'])
      after = purged?.next ?? 0
    }
    // Of the first two that the third step saw, one was too young.
    expect(steps).toEqual([
      [0, 'end'],
      [3, 'on'],
      [1, 'end'],
      [0, 'end'],
      [2, 'end'],
      [0, 'end'],
    ])
    expect(await rows()).toBe(0)
    expect(await tested.measure()).toEqual({ pending: 0, dead: 0, oldestAtMs: undefined })
    const next = await tested.create()
    expect(await tested.measure()).toEqual({ pending: 1, dead: 0, oldestAtMs: next.atMs })
    expect(await tested.claimIds()).toEqual(eventIds(next))
  })

  it('goes on behind what must stay, and behind what a clock dated that was set back since', async () => {
    for (const atMs of [1, 2, 9_000, 3, 4]) await tested.create({ atMs })
    const first = await tested.claim(1)
    const [parked] = first.events
    if (parked) await tested.settle(first.token, dead(parked))
    const rest = await tested.claim()
    await tested.settle(rest.token)
    const { store } = tested
    expect(await wholePass(ask => store.outbox.purgeDelivered(ask))).toEqual([0, 1, 0, 1, 1, 0])
    expect(await wholePass(ask => store.purgeKeys(ask))).toEqual([1, 1, 0, 1, 1, 0])
  })

  it('never deletes what is fresh, claimed, waiting or dead', async () => {
    const writes = await tested.createMany(6)
    const first = await tested.claim(3)
    const [one, two] = first.events
    if (!one || !two) throw new Error('six were made')
    await tested.settle(first.token, retry(one, tested.nowMs + 5_000), dead(two))
    const second = await tested.claim(2)
    // Only the third is delivered.
    expect(await tested.purge()).toBe(1)
    expect(await rows()).toBe(5)
    expect(await tested.measure()).toMatchObject({ pending: 4, dead: 1 })
    await tested.settle(second.token)
    expect(await tested.purge()).toBe(2)
    tested.nowMs += 5_000
    await tested.store.outbox.redrive('all', tested.nowMs)
    expect((await tested.claimIds()).sort()).toEqual([0, 1, 5].map(n => writes[n]?.event.id).sort())
  })

  it('deletes what was delivered behind what is still claimed', async () => {
    const [slow] = await tested.createMany(3)
    const first = await tested.claim(1)
    const second = await tested.claim()
    await tested.settle(second.token)
    expect(await tested.purge()).toBe(2)
    expect(await tested.measure()).toEqual({ pending: 1, dead: 0, oldestAtMs: slow?.atMs })
    await tested.settle(first.token)
    expect(await tested.measure()).toEqual({ pending: 0, dead: 0, oldestAtMs: undefined })
  })

  it('deletes what was delivered out of the middle of a claim, and counts on rightly', async () => {
    const create = await tested.create()
    const first = await tested.claim()
    await tested.cancel(create)
    const slow = await tested.create()
    const second = await tested.claim()
    await tested.settle(first.token)
    tested.nowMs += 200
    const third = await tested.claim()
    await tested.settle(third.token)
    expect(await tested.purge()).toBe(2)
    expect(await tested.measure()).toEqual({ pending: 1, dead: 0, oldestAtMs: slow.atMs })
    await tested.settle(second.token)
    expect(await tested.measure()).toEqual({ pending: 0, dead: 0, oldestAtMs: undefined })
    expect(await tested.purge()).toBe(1)
  })

  it('never gives a sequence twice, not even when everything was purged before a reopen', async () => {
    await tested.create()
    const first = await tested.claim()
    await tested.settle(first.token)
    await tested.purge()
    await tested.reopen()
    await tested.create()
    const second = await tested.claim()
    expect(second.events[0]?.sequence).toBeGreaterThan(first.events[0]?.sequence ?? Number.NaN)
    expect(second.token).toBeGreaterThan(first.token)
  })

  it('deletes keys that are old enough, at most so many at once', async () => {
    for (let atMs = 1; atMs <= 5; atMs++) await tested.create({ atMs })
    const { store } = tested
    const steps: unknown[] = []
    let after = 0
    for (const [madeBeforeMs, limit] of [
      [1, 10],
      [4, 2],
      [4, 2],
      [4, 2],
    ] as const) {
      const purged = await store.purgeKeys({ atMs: 100, madeBeforeMs, limit, after })
      steps.push([purged?.deleted, purged?.next === undefined ? 'end' : 'on'])
      after = purged?.next ?? 0
    }
    expect(steps).toEqual([
      [0, 'end'],
      [2, 'on'],
      [1, 'end'],
      [0, 'end'],
    ])
    expect(await tested.harness.rows()).toEqual({ keys: 2, orders: 5, events: 5 })
  })

  it('makes a new order under a purged key, and leaves the old one', async () => {
    const old = await tested.create()
    const cancel = await tested.cancel(old)
    const { store } = tested
    expect(
      await store.purgeKeys({ atMs: cancel.atMs, madeBeforeMs: cancel.atMs, limit: 10, after: 0 }),
    ).toEqual({
      deleted: 1,
      next: undefined,
    })
    expect(await store.findReply(old, never())).toEqual({ kind: 'absent' })
    expect(await store.findReply(cancel, never())).toMatchObject({ kind: 'found' })
    expect(await store.commit(cancelWrite(old), never())).toMatchObject({ kind: 'taken' })
    const next = orderWrite({ key: old.key })
    expect(await store.commit(next, never())).toEqual({ kind: 'created' })
    expect(await store.commit(orderWrite({ key: old.key }), never())).toMatchObject({
      kind: 'taken',
      reply: { json: next.order.json },
    })
    for (const { tenant, order } of [cancel, next]) {
      expect(await store.findOrder(tenant, order.id, never())).toEqual({
        kind: 'found',
        value: { version: order.version, json: order.json },
      })
    }
  })
}
