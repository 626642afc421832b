import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rehearsedStore } from '../../src/orders/index.ts'
import { never, orderWrite } from '../support/order-write.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'

describe('a rehearsed store', () => {
  let place: SqlitePlace
  beforeEach(() => {
    place = new SqlitePlace()
  })
  afterEach(() => place.dispose())

  it('says created, as often as asked, and keeps nothing: no order, no key, no event', async () => {
    const store = await place.open()
    const rehearsed = rehearsedStore(store)
    const write = orderWrite()
    for (let time = 0; time < 3; time++) {
      expect(await rehearsed.commit(write, never())).toEqual({ kind: 'created' })
    }
    expect(place.rows()).toEqual({ keys: 0, orders: 0, events: 0 })
    expect(await rehearsed.findOrder(write.tenant, write.order.id, never())).toEqual({ kind: 'absent' })
    expect(await rehearsed.findReply(write, never())).toEqual({ kind: 'absent' })
    // The next real one is as if nothing had been.
    expect(await store.commit(write, never())).toEqual({ kind: 'created' })
    expect(place.rows()).toEqual({ keys: 1, orders: 1, events: 1 })
    expect(await store.outbox.claim({ limit: 1, leaseMs: 1_000, atMs: write.atMs })).toMatchObject({
      events: [{ sequence: 1 }],
    })
  })

  it('is reported as no commit, and no listener of the write hears of it', async () => {
    const commits: number[] = []
    place.channels.committed.subscribe(({ batchSize }) => commits.push(batchSize))
    const store = await place.open()
    let durable = 0
    const listener = () => {
      durable++
    }
    await rehearsedStore(store).commit(orderWrite(), never(), listener)
    await store.commit(orderWrite(), never(), listener)
    expect([commits, durable]).toEqual([[1], 1])
  })

  it('passes on that the store is unavailable, or that the caller has left', async () => {
    const store = await place.open()
    const rehearsed = rehearsedStore(store)
    expect(await rehearsed.commit(orderWrite(), AbortSignal.abort())).toEqual({ kind: 'withdrawn' })
    await store.close()
    expect(await rehearsed.commit(orderWrite(), never())).toEqual({ kind: 'unavailable' })
  })
})
