import { describe, expect, test } from 'vitest'
import type { Order } from '../../src/domain/index.ts'
import { cancelOrder, cursorOf, idOfCursor, type ListInput, listOrders } from '../../src/orders/index.ts'
import { orderServices, REQUEST } from './orders-context.ts'

const CUSTOMER = REQUEST.customerId

function asking(input: Partial<ListInput>): ListInput {
  return { customerId: undefined, idempotencyKey: undefined, limit: 20, before: undefined, ...input }
}

async function listed(
  contextOf: ReturnType<typeof orderServices>['contextOf'],
  input: Partial<ListInput>,
  who = {},
) {
  const { json, etag } = await listOrders(contextOf(who), asking(input))
  const { orders, nextCursor } = JSON.parse(json) as { orders: Order[]; nextCursor: string | null }
  return { orders, ids: orders.map(({ id }) => id), nextCursor, etag, json }
}

/** Orders a millisecond apart, so that their ids are in the order of their making. */
async function placed(services: ReturnType<typeof orderServices>, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let made = 0; made < count; made++) {
    services.clock.advance(1)
    ids.unshift(await services.place(`key-${made}`))
  }
  return ids
}

describe("listing a customer's orders", () => {
  test('gives the newest first, whole, in pages that neither repeat nor miss any', async () => {
    const services = orderServices()
    const ids = await placed(services, 7)
    const seen: string[] = []
    let before: string | undefined
    for (const size of [3, 3, 1]) {
      const page = await listed(services.contextOf, { customerId: CUSTOMER, limit: 3, before })
      expect(page.ids).toHaveLength(size)
      seen.push(...page.ids)
      expect(page.nextCursor).toBe(size === 3 ? cursorOf(page.ids.at(-1) ?? '') : null)
      before = page.nextCursor === null ? undefined : idOfCursor(page.nextCursor)
    }
    expect(seen).toEqual(ids)
  })

  test('of exactly one page has no next one', async () => {
    const services = orderServices()
    await placed(services, 3)
    expect((await listed(services.contextOf, { customerId: CUSTOMER, limit: 3 })).nextCursor).toBeNull()
  })

  test('that are large end their page early, and go on with the next', async () => {
    const services = orderServices()
    const items = Array.from({ length: 50 }, (_, n) => ({ sku: `${'S'.repeat(50)}-${n}`, quantity: 1_000 }))
    const ids: string[] = []
    for (let made = 0; made < 15; made++) {
      services.clock.advance(1)
      ids.unshift(await services.place(`key-${made}`, { items }))
    }
    const seen: string[] = []
    for (let before: string | undefined, pages = 0; ; pages++) {
      const page = await listed(services.contextOf, { customerId: CUSTOMER, before })
      expect(Buffer.byteLength(page.json)).toBeLessThan(65_536)
      expect(page.ids.length).toBeGreaterThan(0)
      seen.push(...page.ids)
      if (page.nextCursor === null) {
        expect(pages).toBeGreaterThan(0)
        break
      }
      before = idOfCursor(page.nextCursor)
    }
    expect(seen).toEqual(ids)
  })

  test('with none is an empty list, and of another tenant too', async () => {
    const services = orderServices()
    await placed(services, 1)
    const none = '{"orders":[],"nextCursor":null}'
    expect((await listed(services.contextOf, { customerId: 'nobody' })).json).toBe(none)
    const stranger = await listed(services.contextOf, { customerId: CUSTOMER }, { tenant: 'globex' })
    expect(stranger.json).toBe(none)
  })

  test('costs one look-up for as long as nothing changes, and shows what was placed meanwhile', async () => {
    const services = orderServices()
    const [old] = await placed(services, 1)
    services.store.lookups = 0
    const first = await listed(services.contextOf, { customerId: CUSTOMER })
    expect(await listed(services.contextOf, { customerId: CUSTOMER })).toEqual(first)
    expect(services.store.lookups).toBe(1)
    services.clock.advance(1)
    const id = await services.place('another')
    const second = await listed(services.contextOf, { customerId: CUSTOMER })
    expect(second.ids).toEqual([id, old])
    expect(second.etag).not.toBe(first.etag)
    await cancelOrder(services.contextOf(), { key: 'c', id })
    const third = await listed(services.contextOf, { customerId: CUSTOMER })
    expect(third.orders.map(({ status }) => status)).toEqual(['cancelled', 'accepted'])
    expect(third.etag).not.toBe(second.etag)
  })

  test('is not shared between views, whoever asks first', async () => {
    for (const views of [
      ['full', 'masked'],
      ['masked', 'full'],
    ] as const) {
      const services = orderServices()
      await placed(services, 2)
      const etags = new Set<string>()
      for (const view of [...views, ...views]) {
        const page = await listed(services.contextOf, { customerId: CUSTOMER }, { view })
        etags.add(page.etag)
        expect(page.json.includes(CUSTOMER)).toBe(view === 'full')
        expect(page.orders.map(({ reference }) => reference)).toEqual(
          Array(2).fill(view === 'full' ? REQUEST.reference : '***'),
        )
      }
      expect(etags.size).toBe(2)
    }
  })

  test('with customers, limits and cursors of every kind never answers one question with another', async () => {
    const services = orderServices()
    const ids = await placed(services, 3)
    const colon = await services.place('k', { customerId: 'a:1:b' })
    const questions: [Partial<ListInput>, string[]][] = [
      [{ customerId: CUSTOMER, limit: 1 }, ids.slice(0, 1)],
      [{ customerId: CUSTOMER, limit: 11 }, ids],
      [{ customerId: CUSTOMER, limit: 1, before: ids[0] }, ids.slice(1, 2)],
      [{ customerId: 'a:1:b' }, [colon]],
      [{ customerId: 'b' }, []],
      [{ customerId: '1:b' }, []],
    ]
    for (const [question, answer] of [...questions, ...questions]) {
      expect((await listed(services.contextOf, question)).ids).toEqual(answer)
    }
  })

  test('is a 503 while the store is unavailable, and is asked again', async () => {
    const services = orderServices()
    const ids = await placed(services, 1)
    services.store.onLookup = () => ({ kind: 'unavailable' })
    await expect(listed(services.contextOf, { customerId: CUSTOMER })).rejects.toMatchObject({
      code: 'store-unavailable',
    })
    services.store.onLookup = undefined
    expect((await listed(services.contextOf, { customerId: CUSTOMER })).ids).toEqual(ids)
  })
})

describe('listing by idempotency key', () => {
  test('gives the order that was made under it, in its newest version', async () => {
    const services = orderServices()
    const [id = ''] = await placed(services, 2)
    const list = await listed(services.contextOf, { idempotencyKey: 'key-1' })
    expect(list).toMatchObject({ ids: [id], nextCursor: null })
    await cancelOrder(services.contextOf(), { key: 'key-0', id })
    const again = await listed(services.contextOf, { idempotencyKey: 'key-1' })
    expect(again.orders).toMatchObject([{ id, status: 'cancelled', version: 2 }])
    expect(again.etag).not.toBe(list.etag)
  })

  test('finds nothing under a key that was never used, and the order as soon as it was', async () => {
    const services = orderServices()
    for (let asked = 0; asked < 2; asked++) {
      expect((await listed(services.contextOf, { idempotencyKey: 'k' })).ids).toEqual([])
    }
    expect(services.store.lookups).toBe(1)
    const id = await services.place('k')
    expect((await listed(services.contextOf, { idempotencyKey: 'k' })).ids).toEqual([id])
  })

  test('must fit the customer and the cursor when they are given', async () => {
    const services = orderServices()
    const [id = ''] = await placed(services, 1)
    const key = { idempotencyKey: 'key-0' }
    expect((await listed(services.contextOf, { ...key, customerId: CUSTOMER })).ids).toEqual([id])
    expect((await listed(services.contextOf, { ...key, customerId: 'another' })).ids).toEqual([])
    expect((await listed(services.contextOf, { ...key, before: id })).ids).toEqual([])
  })

  test('shows a masked key the mask, and fits by what it may not see', async () => {
    const services = orderServices()
    await placed(services, 1)
    const { orders } = await listed(services.contextOf, { idempotencyKey: 'key-0' }, { view: 'masked' })
    expect(orders).toMatchObject([{ customerId: '***', reference: '***' }])
  })

  test("does not find another tenant's, nor what a cancel used", async () => {
    const services = orderServices()
    const [id = ''] = await placed(services, 1)
    await cancelOrder(services.contextOf(), { key: 'cancelling', id })
    expect((await listed(services.contextOf, { idempotencyKey: 'cancelling' })).ids).toEqual([])
    const stranger = await listed(services.contextOf, { idempotencyKey: 'key-0' }, { tenant: 'globex' })
    expect(stranger.ids).toEqual([])
  })
})
