import { describe, expect, test } from 'vitest'
import type { Order } from '../../src/domain/index.ts'
import { fingerprint } from '../../src/idempotency/index.ts'
import { cancelOrder, getOrder } from '../../src/orders/index.ts'
import { cancelWrite } from '../support/order-write.ts'
import { orderServices, REQUEST, TRACEPARENT } from './orders-context.ts'

async function withOrder() {
  const services = orderServices()
  const id = await services.place('k')
  const read = async () => JSON.parse((await getOrder(services.contextOf(), { id })).json) as Order
  return { ...services, id, read }
}

describe('cancelling an order', () => {
  test('writes its next version, the key and the event as one', async () => {
    const { clock, store, decided, id, read, contextOf } = await withOrder()
    const before = await read()
    clock.advance(1_234)
    const reply = await cancelOrder(contextOf(), { key: 'c', id })
    const at = new Date(clock.wallMs()).toISOString()
    expect(JSON.parse(reply.json)).toEqual({ ...before, status: 'cancelled', version: 2, updatedAt: at })
    expect(reply).toMatchObject({ status: 200, etag: '"v2"', replayed: false })
    expect(store.writes.at(-1)).toMatchObject({
      tenant: 'acme',
      operation: 'orders.cancel',
      key: 'c',
      fingerprint: fingerprint({ id }),
      order: { id, customerId: REQUEST.customerId, status: 'cancelled', version: 2, json: reply.json },
      event: { type: 'order.cancelled', traceparent: TRACEPARENT },
      reply: { status: 200 },
      atMs: clock.wallMs(),
    })
    expect(store.events).toBe(2)
    expect(decided).toEqual(['new', 'new'])
    expect(await read()).toEqual(JSON.parse(reply.json))
  })

  test('never dates back, wherever the wall clock has gone', async () => {
    const { clock, id, read, contextOf } = await withOrder()
    const { createdAt } = await read()
    clock.setWallMs(0)
    const { updatedAt } = JSON.parse((await cancelOrder(contextOf(), { key: 'c', id })).json) as Order
    expect(updatedAt).toBe(createdAt)
  })

  test('under the same key gives the first answer again, byte for byte', async () => {
    const { clock, store, id, decided, contextOf } = await withOrder()
    const first = await cancelOrder(contextOf(), { key: 'c', id })
    clock.advance(60_000)
    expect(await cancelOrder(contextOf(), { key: 'c', id })).toEqual({ ...first, replayed: true })
    expect(store.events).toBe(2)
    expect(decided.at(-1)).toBe('replay')
  })

  test('under another key is a conflict of state, which is not stored', async () => {
    const { store, id, contextOf } = await withOrder()
    await cancelOrder(contextOf(), { key: 'c', id })
    for (let tried = 0; tried < 2; tried++) {
      await expect(cancelOrder(contextOf(), { key: 'd', id })).rejects.toMatchObject({
        code: 'order-state-conflict',
        status: 409,
      })
    }
    expect(store.keys).toBe(2)
  })

  test('found cancelled by another process is not contradicted afterwards', async () => {
    const { store, id, contextOf } = await withOrder()
    const masked = async () =>
      JSON.parse((await getOrder(contextOf({ view: 'masked' }), { id })).json) as Order
    expect(await masked()).toMatchObject({ version: 1 })
    const write = store.writes[0]
    if (write === undefined) throw new TypeError('an order was placed without a write')
    await store.commit(cancelWrite(write), new AbortController().signal)
    await expect(cancelOrder(contextOf(), { key: 'c', id })).rejects.toMatchObject({
      code: 'order-state-conflict',
    })
    expect(await masked()).toMatchObject({ version: 2 })
  })

  test('under a key that cancelled another order is a conflict of keys, in whatever state the order is', async () => {
    const { id, place, contextOf } = await withOrder()
    const other = await place('k2')
    await cancelOrder(contextOf(), { key: 'c', id })
    await expect(cancelOrder(contextOf(), { key: 'c', id: other })).rejects.toMatchObject({
      code: 'idempotency-conflict',
    })
    await cancelOrder(contextOf(), { key: 'd', id: other })
    await expect(cancelOrder(contextOf(), { key: 'c', id: other })).rejects.toMatchObject({
      code: 'idempotency-conflict',
    })
  })

  test('takes the key that placed it as a key of its own', async () => {
    const { id, contextOf } = await withOrder()
    expect(await cancelOrder(contextOf(), { key: 'k', id })).toMatchObject({ status: 200, replayed: false })
  })

  test.each(['x', '01890a5d-ac96-774b-bcce-b302099a8057'])('finds no %s', async id => {
    const { contextOf } = await withOrder()
    await expect(cancelOrder(contextOf(), { key: 'c', id })).rejects.toMatchObject({ code: 'not-found' })
  })

  test("does not find another tenant's", async () => {
    const { id, store, contextOf } = await withOrder()
    await expect(cancelOrder(contextOf({ tenant: 'globex' }), { key: 'c', id })).rejects.toMatchObject({
      code: 'not-found',
    })
    expect(store.events).toBe(1)
  })

  test('twenty times at once with one key cancels it once', async () => {
    const { id, store, contextOf } = await withOrder()
    const cancels = Array.from({ length: 20 }, () => cancelOrder(contextOf(), { key: 'c', id }))
    const replies = await Promise.all(cancels)
    expect(new Set(replies.map(({ json, etag, status }) => JSON.stringify([json, etag, status]))).size).toBe(
      1,
    )
    expect(replies.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(store.events).toBe(2)
  })

  test('twenty times at once with as many keys cancels it for one of them', async () => {
    const { id, store, contextOf } = await withOrder()
    const cancels = Array.from({ length: 20 }, (_, n) => cancelOrder(contextOf(), { key: `c${n}`, id }))
    const outcomes = await Promise.allSettled(cancels)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'order-state-conflict' })
    }
    expect(store.events).toBe(2)
  })

  test('reads again when somebody else was quicker than its own commit', async () => {
    const { id, store, contextOf } = await withOrder()
    store.onCommit = () => {
      store.onCommit = undefined
      return { kind: 'outdated' }
    }
    expect(await cancelOrder(contextOf(), { key: 'c', id })).toMatchObject({ status: 200, replayed: false })
    // The order was read from the store anew, not from what the cache held.
    expect(store.writes).toHaveLength(3)
  })

  test('ends with its lease when it is always too late', async () => {
    const { clock, id, store, leaseOf, contextOf } = await withOrder()
    const lease = leaseOf()
    store.onCommit = () => {
      clock.advance(50)
      return { kind: 'outdated' }
    }
    const error = await cancelOrder(contextOf({ lease }), { key: 'c', id }).catch((thrown: unknown) => thrown)
    expect(error).toBe(lease.ended)
  })

  test('does not call a state a conflict while the store cannot say whose it is', async () => {
    const { id, store, contextOf } = await withOrder()
    await cancelOrder(contextOf(), { key: 'c', id })
    await getOrder(contextOf(), { id })
    store.onLookup = () => ({ kind: 'unavailable' })
    await expect(cancelOrder(contextOf(), { key: 'c', id })).rejects.toMatchObject({
      code: 'store-unavailable',
    })
  })

  test('shows a masked key the mask, also of what a full one did', async () => {
    const { id, store, contextOf } = await withOrder()
    const first = await cancelOrder(contextOf({ view: 'masked' }), { key: 'c', id })
    const full = await cancelOrder(contextOf(), { key: 'c', id })
    const masked = await cancelOrder(contextOf({ view: 'masked' }), { key: 'c', id })
    expect(JSON.parse(first.json)).toMatchObject({ status: 'cancelled', customerId: '***', reference: '***' })
    expect(masked).toEqual({ ...first, replayed: true })
    expect(JSON.parse(full.json)).toMatchObject({ customerId: REQUEST.customerId })
    expect(store.writes.at(-1)?.order.json).toContain(REQUEST.customerId)
  })
})
