import { describe, expect, test } from 'vitest'
import type { Order } from '../../src/domain/index.ts'
import { cancelOrder, getOrder, listOrders, placeOrder } from '../../src/orders/index.ts'
import { orderWrite } from '../support/order-write.ts'
import { promisesSettled } from '../support/virtual-clock.ts'
import { orderServices, REQUEST } from './orders-context.ts'

const LIST = { customerId: REQUEST.customerId, idempotencyKey: undefined, limit: 20, before: undefined }

/** A customer with one order, which the cache holds alone and in the list. */
async function warm() {
  const services = orderServices()
  const id = await services.place('first')
  const order = async () => (await getOrder(services.contextOf(), { id })).json
  const list = async () => (await listOrders(services.contextOf(), LIST)).json
  await Promise.all([order(), list()])
  services.store.lookups = 0
  return { ...services, id, order, list }
}

describe('what the cache holds of an order', () => {
  test('is out of date before the write that changes it is answered', async () => {
    const { id, order, list, contextOf } = await warm()
    const { json } = await cancelOrder(contextOf(), { key: 'c', id })
    expect(await order()).toBe(json)
    expect(await list()).toContain(json)
  })

  test('is out of date although its caller hung up in the middle of the commit', async () => {
    const { store, id, leaseOf, order, list, contextOf } = await warm()
    const lease = leaseOf()
    const reached = Promise.withResolvers<void>()
    const committing = Promise.withResolvers<void>()
    store.onCommit = async (_write, _signal, durable) => {
      reached.resolve()
      await committing.promise
      durable()
      return { kind: 'created' }
    }
    const cancelling = cancelOrder(contextOf({ lease }), { key: 'c', id })
    await reached.promise
    lease.abandon()
    committing.resolve()
    await cancelling
    await Promise.all([order(), list()])
    expect(store.lookups).toBe(2)
  })

  test('is out of date when the write turns out durable long after its caller was told unknown', async () => {
    const { store, id, order, list, contextOf } = await warm()
    let late = () => {}
    store.onCommit = (_write, _signal, durable) => {
      late = durable
      return { kind: 'unknown' }
    }
    await expect(cancelOrder(contextOf(), { key: 'c', id })).rejects.toMatchObject({
      code: 'budget-exhausted',
      extensions: { committed: 'unknown' },
    })
    await Promise.all([order(), list()])
    expect(store.lookups).toBe(0)
    late()
    await Promise.all([order(), list()])
    expect(store.lookups).toBe(2)
  })

  test.each(['withdrawn', 'unavailable'] as const)('stays when a write was %s', async kind => {
    const { store, leaseOf, order, contextOf } = await warm()
    const lease = leaseOf()
    store.onCommit = () => {
      lease.abandon()
      return { kind }
    }
    const placing = placeOrder(contextOf({ lease }), { key: 'second', request: REQUEST })
    await expect(placing).rejects.toBeDefined()
    await order()
    expect(store.lookups).toBe(0)
  })

  test('is out of date after a replay: another process may have made what it acknowledges', async () => {
    const { store, contextOf, list } = await warm()
    const write = orderWrite({ tenant: 'acme', key: 'elsewhere' })
    const json = JSON.stringify({ id: write.order.id, customerId: REQUEST.customerId })
    const reply = { ...write.reply, fingerprint: '', version: 1, json }
    store.onCommit = asked => ({ kind: 'taken', reply: { ...reply, fingerprint: asked.fingerprint } })
    expect(await placeOrder(contextOf(), { key: 'elsewhere', request: REQUEST })).toMatchObject({
      replayed: true,
    })
    await list()
    expect(store.lookups).toBe(1)
  })

  test('is not filled by a look-up that began before the write', async () => {
    const services = orderServices()
    const { store, contextOf, place } = services
    const id = await place('first')
    const before = await store.findOrder('acme', id, new AbortController().signal)
    const reading = Promise.withResolvers<typeof before>()
    const findOrder = store.findOrder.bind(store)
    store.findOrder = () => reading.promise
    // Masked, since the cancel itself reads the full view and would wait along.
    const read = async () => JSON.parse((await getOrder(contextOf({ view: 'masked' }), { id })).json) as Order
    const early = read()
    await promisesSettled()
    store.findOrder = findOrder
    await cancelOrder(contextOf(), { key: 'c', id })
    const late = read()
    reading.resolve(before)
    expect(await early).toMatchObject({ version: 1 })
    expect(await late).toMatchObject({ version: 2 })
    expect(await read()).toMatchObject({ version: 2 })
  })
})
