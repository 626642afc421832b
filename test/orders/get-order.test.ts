import { describe, expect, test } from 'vitest'
import { getOrder, placeOrder } from '../../src/orders/index.ts'
import { someId } from '../support/order-write.ts'
import { orderServices, REQUEST } from './orders-context.ts'

async function withOrder() {
  const services = orderServices()
  const placed = await placeOrder(services.contextOf(), { key: 'k', request: REQUEST })
  services.store.lookups = 0
  return { ...services, placed, id: placed.location.replace('/v1/orders/', '') }
}

describe('getting an order', () => {
  test('shows it as it was acknowledged', async () => {
    const { placed, id, contextOf } = await withOrder()
    expect(await getOrder(contextOf(), { id })).toEqual({ json: placed.json, etag: placed.etag })
  })

  test('shows a masked key the mask', async () => {
    const { id, contextOf } = await withOrder()
    const { json, etag } = await getOrder(contextOf({ view: 'masked' }), { id })
    expect(json).not.toMatch(/customer-7|4711/)
    expect(JSON.parse(json)).toMatchObject({ id, customerId: '***', reference: '***', total: 500 })
    expect(etag).toBe('"v1-masked"')
  })

  test('finds neither what is not there nor what is of another tenant', async () => {
    const { id, contextOf } = await withOrder()
    const refusals = [
      getOrder(contextOf(), { id: '01890a5d-ac96-774b-bcce-b302099a8057' }),
      getOrder(contextOf({ tenant: 'globex' }), { id }),
    ]
    for (const refusal of refusals) {
      await expect(refusal).rejects.toMatchObject({ code: 'not-found', status: 404, extensions: {} })
    }
  })

  test.each(['', 'x', '__proto__', "' OR 1=1", '00000000-0000-4000-8000-000000000000', '\ud800'])(
    'does not ask the store for %j, which is no id',
    async id => {
      const { store, contextOf } = await withOrder()
      await expect(getOrder(contextOf(), { id })).rejects.toMatchObject({ code: 'not-found' })
      expect(store.lookups).toBe(0)
    },
  )

  test('is a 503 while the store is unavailable', async () => {
    const { store, id, contextOf } = await withOrder()
    store.onLookup = () => ({ kind: 'unavailable' })
    await expect(getOrder(contextOf(), { id })).rejects.toMatchObject({
      code: 'store-unavailable',
      status: 503,
    })
  })

  test('withdrawn ends with the end of its lease, in the stage read', async () => {
    const { clock, store, id, leaseOf, contextOf } = await withOrder()
    const lease = leaseOf(50)
    store.onLookup = () => {
      clock.advance(60)
      return { kind: 'withdrawn' }
    }
    const error = await getOrder(contextOf({ lease }), { id }).catch((thrown: unknown) => thrown)
    expect(error).toBe(lease.ended)
    expect(error).toMatchObject({ cause: 'expired', stage: 'read' })
  })

  test('that takes longer than a reader may wait is a 504 that says so', async () => {
    const { clock, store, id, contextOf } = await withOrder()
    store.onLookup = () => {
      clock.advance(150)
      return { kind: 'withdrawn' }
    }
    await expect(getOrder(contextOf(), { id })).rejects.toMatchObject({
      code: 'budget-exhausted',
      extensions: { budgetMs: 200, stage: 'read', committed: 'no' },
    })
  })

  test('is a 503 when no further load may start', async () => {
    const { store, contextOf } = orderServices({ maxConcurrentLoads: 1 })
    const held = Promise.withResolvers<never>()
    store.findOrder = () => held.promise
    const ids = [someId(), someId()]
    const [first, second] = ids.map(id => getOrder(contextOf(), { id }))
    await expect(second).rejects.toMatchObject({ code: 'store-unavailable' })
    held.reject(new TypeError('the end of the test'))
    await expect(first).rejects.toThrow('the end of the test')
  })

  test('is read from the store once, for as long as it does not change', async () => {
    const { store, id, contextOf } = await withOrder()
    await Promise.all(Array.from({ length: 30 }, () => getOrder(contextOf(), { id })))
    await getOrder(contextOf(), { id })
    expect(store.lookups).toBe(1)
    await getOrder(contextOf({ view: 'masked' }), { id })
    expect(store.lookups).toBe(2)
  })

  test('withdrawn under a lease that stands is a fault of the store', async () => {
    const { store, id, contextOf } = await withOrder()
    store.onLookup = () => ({ kind: 'withdrawn' })
    await expect(getOrder(contextOf(), { id })).rejects.toBeInstanceOf(TypeError)
  })
})
