import { describe, expect, test } from 'vitest'
import { isId, type Order } from '../../src/domain/index.ts'
import { fingerprint } from '../../src/idempotency/index.ts'
import { placeOrder } from '../../src/orders/index.ts'
import { COMMIT_RESERVE_MS, failing } from '../pricing/priced-context.ts'
import { orderServices, REQUEST, TRACEPARENT } from './orders-context.ts'

const OTHER = { ...REQUEST, reference: 'another' }
const INPUT = { key: 'k', request: REQUEST }
const thrown = (promise: Promise<unknown>) =>
  promise.then(
    () => 'nothing',
    (error: unknown) => error,
  )

describe('placing an order', () => {
  test('prices it and writes order, key and event as one', async () => {
    const { clock, store, decided, priceRequests, contextOf } = orderServices()
    const placed = await placeOrder(contextOf(), INPUT)
    const order = JSON.parse(placed.json) as Order
    const at = new Date(clock.wallMs()).toISOString()
    expect(order).toEqual({
      id: order.id,
      status: 'accepted',
      version: 1,
      customerId: 'customer-7',
      currency: 'USD',
      items: [
        { sku: 'A', quantity: 2, unitPrice: 100, lineTotal: 200 },
        { sku: 'B', quantity: 3, unitPrice: 100, lineTotal: 300 },
      ],
      total: 500,
      pricing: 'live',
      reference: 'PO 4711',
      createdAt: at,
      updatedAt: at,
    })
    expect(isId(order.id)).toBe(true)
    expect(placed).toMatchObject({
      status: 201,
      location: `/v1/orders/${order.id}`,
      etag: '"v1"',
      replayed: false,
    })
    expect(store.writes).toMatchObject([
      {
        tenant: 'acme',
        operation: 'orders.create',
        key: 'k',
        fingerprint: fingerprint(REQUEST),
        order: { id: order.id, customerId: 'customer-7', status: 'accepted', version: 1, json: placed.json },
        event: { type: 'order.created', traceparent: TRACEPARENT },
        reply: { status: 201, location: placed.location },
        atMs: clock.wallMs(),
      },
    ])
    expect(store.writes[0]?.event.id).not.toBe(order.id)
    expect(priceRequests.map(({ traceparent }) => traceparent)).toEqual([TRACEPARENT])
    expect(decided).toEqual(['new'])
  })

  test('gives the same request under the same key the first answer again, byte for byte', async () => {
    const { clock, store, decided, contextOf } = orderServices()
    const first = await placeOrder(contextOf(), INPUT)
    // Once with the prices at hand (the constraint finds it), once without (the look-up finds it).
    for (const passedMs of [5_000, 60_000]) {
      clock.advance(passedMs)
      expect(await placeOrder(contextOf(), INPUT)).toEqual({ ...first, replayed: true })
    }
    expect(store.orders).toBe(1)
    expect(decided).toEqual(['new', 'replay', 'replay'])
  })

  test('refuses another request under the same key, whichever way the key is found taken', async () => {
    const { clock, store, decided, contextOf } = orderServices()
    await placeOrder(contextOf(), INPUT)
    for (const passedMs of [0, 60_000]) {
      clock.advance(passedMs)
      await expect(placeOrder(contextOf(), { key: 'k', request: OTHER })).rejects.toMatchObject({
        code: 'idempotency-conflict',
        status: 409,
      })
    }
    expect(store.orders).toBe(1)
    expect(decided).toEqual(['new', 'conflict', 'conflict'])
  })

  test('lets two tenants use one key', async () => {
    const { store, contextOf } = orderServices()
    const one = await placeOrder(contextOf({ tenant: 'acme' }), INPUT)
    const other = await placeOrder(contextOf({ tenant: 'globex' }), INPUT)
    expect(other.replayed).toBe(false)
    expect(other.location).not.toBe(one.location)
    expect(store.orders).toBe(2)
  })

  test('looks first when a price is missing, and not when all of them are at hand', async () => {
    const { store, contextOf } = orderServices()
    await placeOrder(contextOf(), { key: 'k1', request: REQUEST })
    expect(store.lookups).toBe(1)
    await placeOrder(contextOf(), { key: 'k2', request: REQUEST })
    expect(store.lookups).toBe(1)
    expect(store.orders).toBe(2)
  })

  test('replays while pricing is down and refuses what is new', async () => {
    const { clock, store, pricing, priceRequests, contextOf } = orderServices()
    const first = await placeOrder(contextOf(), INPUT)
    clock.advance(60_000)
    pricing.answer = failing('failed')
    expect(await placeOrder(contextOf(), INPUT)).toEqual({ ...first, replayed: true })
    expect(priceRequests).toHaveLength(1)
    await expect(placeOrder(contextOf(), { key: 'new', request: REQUEST })).rejects.toMatchObject({
      code: 'pricing-unavailable',
    })
    expect(store.writes).toHaveLength(1)
  })

  test('made at remembered prices says so for good, and the next one asks pricing again', async () => {
    const { store, pricing, priceRequests, contextOf } = orderServices()
    const { answer } = pricing
    pricing.answer = async request => ({ ...(await answer(request)), source: 'fallback' })
    const placed = await placeOrder(contextOf(), INPUT)
    expect(JSON.parse(placed.json)).toMatchObject({ pricing: 'fallback', total: 500 })
    expect(placed.json).toContain('"pricing":"fallback"')
    expect(store.writes[0]?.order.json).toBe(placed.json)

    pricing.answer = answer
    expect(await placeOrder(contextOf(), INPUT)).toEqual({ ...placed, replayed: true })
    const next = await placeOrder(contextOf(), { key: 'next', request: REQUEST })
    expect(JSON.parse(next.json)).toMatchObject({ pricing: 'live' })
    // The replay was found before it asked.
    expect(priceRequests).toHaveLength(2)
  })

  test('made at prices that are partly remembered says so too', async () => {
    const { pricing, contextOf } = orderServices()
    const { answer } = pricing
    const [item] = REQUEST.items
    await placeOrder(contextOf(), { key: 'fresh', request: { ...REQUEST, items: item ? [item] : [] } })
    pricing.answer = async request => ({ ...(await answer(request)), source: 'fallback' })
    const placed = await placeOrder(contextOf(), INPUT)
    expect(JSON.parse(placed.json)).toMatchObject({ pricing: 'fallback' })
  })

  test('goes on to the commit when the look-up cannot say, for only the constraint judges', async () => {
    const { store, contextOf } = orderServices()
    store.onLookup = () => ({ kind: 'unavailable' })
    expect(await placeOrder(contextOf(), INPUT)).toMatchObject({ status: 201, replayed: false })
  })

  test('withdrawn in time ends with the end of its lease', async () => {
    const { clock, store, leaseOf, contextOf } = orderServices()
    const lease = leaseOf(200)
    store.onCommit = (_write, signal) => {
      clock.advance(300)
      expect(signal.aborted).toBe(true)
      return { kind: 'withdrawn' }
    }
    expect(await thrown(placeOrder(contextOf({ lease }), INPUT))).toBe(lease.ended)
    expect(lease.ended).toMatchObject({ cause: 'expired', stage: 'commit' })
  })

  test('withdrawn under a lease that stands is a fault of the store', async () => {
    const { store, contextOf } = orderServices()
    store.onCommit = () => ({ kind: 'withdrawn' })
    expect(await thrown(placeOrder(contextOf(), INPUT))).toBeInstanceOf(TypeError)
  })

  test('claimed without a verdict is a 504 that says unknown', async () => {
    const { store, decided, leaseOf, contextOf } = orderServices()
    store.onCommit = () => ({ kind: 'unknown' })
    await expect(placeOrder(contextOf({ lease: leaseOf(150) }), INPUT)).rejects.toMatchObject({
      code: 'budget-exhausted',
      extensions: { budgetMs: 150, stage: 'commit', committed: 'unknown' },
    })
    expect(decided).toEqual([])
  })

  test('that landed although the lease ran out is answered with the fact', async () => {
    const { clock, store, contextOf } = orderServices()
    store.onCommit = () => {
      clock.advance(300)
      return { kind: 'created' }
    }
    expect(await placeOrder(contextOf(), INPUT)).toMatchObject({ status: 201, replayed: false })
  })

  test('with the store unavailable is a 503, and acknowledged to nobody', async () => {
    const { store, decided, contextOf } = orderServices()
    store.onCommit = () => ({ kind: 'unavailable' })
    await expect(placeOrder(contextOf(), INPUT)).rejects.toMatchObject({
      code: 'store-unavailable',
      status: 503,
      extensions: {},
    })
    expect(decided).toEqual([])
  })

  test.each([0, 1])('does not begin the commit with %i ms more than the reserve gone', async overMs => {
    const { clock, store, pricing, leaseOf, contextOf } = orderServices()
    const lease = leaseOf(200)
    const { answer } = pricing
    pricing.answer = async request => {
      clock.advance(200 - COMMIT_RESERVE_MS + overMs)
      return answer(request)
    }
    expect(await thrown(placeOrder(contextOf({ lease }), INPUT))).toBe(lease.ended)
    expect(lease.ended).toMatchObject({ cause: 'expired', stage: 'commit' })
    expect(store.writes).toEqual([])
  })

  test('does not begin the commit with too little left when all prices are at hand either', async () => {
    const { clock, store, leaseOf, contextOf } = orderServices()
    await placeOrder(contextOf(), { key: 'first', request: REQUEST })
    const lease = leaseOf(200)
    clock.advance(190)
    expect(await thrown(placeOrder(contextOf({ lease }), INPUT))).toBe(lease.ended)
    expect(store.writes).toHaveLength(1)
  })

  test('does not ask for prices for which no time is left', async () => {
    const { clock, priceRequests, leaseOf, contextOf } = orderServices()
    const lease = leaseOf(200)
    clock.advance(190)
    expect(await thrown(placeOrder(contextOf({ lease }), INPUT))).toBe(lease.ended)
    expect(lease.ended).toMatchObject({ stage: 'pricing' })
    expect(priceRequests).toEqual([])
  })

  test('shows a masked key the mask, in the first answer and in a replay, and stores the whole order', async () => {
    const { clock, store, contextOf } = orderServices()
    const first = await placeOrder(contextOf({ view: 'masked' }), INPUT)
    const replays = [await placeOrder(contextOf({ view: 'masked' }), INPUT)]
    clock.advance(60_000)
    replays.push(await placeOrder(contextOf({ view: 'masked' }), INPUT))
    for (const answer of [first, ...replays]) {
      expect(answer.json).not.toMatch(/customer-7|4711/)
      expect(JSON.parse(answer.json)).toMatchObject({ customerId: '***', reference: '***' })
      expect(answer.etag).toBe('"v1-masked"')
      expect(answer.json).toBe(first.json)
    }
    expect(store.writes[0]?.order.json).toMatch(/customer-7.*4711/)
    const full = await placeOrder(contextOf({ view: 'full' }), INPUT)
    expect(JSON.parse(full.json)).toMatchObject({ customerId: 'customer-7', reference: 'PO 4711' })
    expect(full.etag).toBe('"v1"')
  })
})
