import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import type { ListedOrder, Lookup, OrderWrite } from '../../../src/store/index.ts'
import type { StoreUnderTest } from '../../contracts/store.contract.ts'
import { cancelWrite, never, orderWrite, someId } from '../../support/order-write.ts'

/** What every driver promises about a customer's orders. */
export function listsContract(tested: StoreUnderTest): void {
  function list(
    customerId = 'customer-1',
    { tenant = 'tenant-1', limit = 100, before = undefined as string | undefined, signal = never() } = {},
  ): Promise<Lookup<readonly ListedOrder[]>> {
    return tested.store.findOrders(tenant, customerId, { limit, before }, signal)
  }

  async function made(...writes: OrderWrite[]): Promise<void> {
    const verdicts = await Promise.all(writes.map(write => tested.store.commit(write, never())))
    expect(verdicts.map(({ kind }) => kind)).toEqual(writes.map(() => 'created'))
  }

  it('shows the orders of one customer of one tenant, newest first', async () => {
    const mine = Array.from({ length: 7 }, () => orderWrite())
    await made(
      ...[...mine].sort(() => Math.random() - 0.5),
      orderWrite({ tenant: 'tenant-2' }),
      orderWrite({ customerId: 'customer-2' }),
      orderWrite({ customerId: 'customer-10' }),
    )
    const newestFirst = mine
      .map(({ order }) => ({ id: order.id, version: 1, json: order.json }))
      .sort((one, other) => (one.id < other.id ? 1 : -1))
    expect(await list()).toEqual({ kind: 'found', value: newestFirst })
  })

  it('finds none as an empty list', async () => {
    expect(await list()).toEqual({ kind: 'found', value: [] })
    const write = orderWrite()
    await made(write)
    expect(await list('customer-1', { before: write.order.id })).toEqual({ kind: 'found', value: [] })
    expect(await list('customer-1', { tenant: 'tenant-2' })).toEqual({ kind: 'found', value: [] })
  })

  it.each([1, 2, 3, 10, 11])('goes through all, each once, in pages of %i', async limit => {
    const writes = Array.from({ length: 10 }, () => orderWrite())
    await made(...writes)
    const seen: string[] = []
    const sizes: number[] = []
    for (let before: string | undefined; ; before = seen.at(-1)) {
      const ids = idsOf(await list('customer-1', { limit, before }))
      sizes.push(ids.length)
      seen.push(...ids)
      if (ids.length < limit) break
    }
    expect(seen).toEqual(newestFirst(writes))
    expect(Math.max(...sizes)).toBe(Math.min(limit, 10))
  })

  it('begins below an id whether or not there is such an order', async () => {
    const [older, between, newer] = [someId(), someId(), someId()].sort()
    await made(orderWrite({ id: older ?? '' }), orderWrite({ id: newer ?? '' }))
    expect(idsOf(await list('customer-1', { before: between }))).toEqual([older])
    expect(idsOf(await list('customer-1', { before: newer }))).toEqual([older])
  })

  it('shows the newest version in the place of the first', async () => {
    const writes = [someId(), someId(), someId()].sort().map(id => orderWrite({ id }))
    await made(...writes)
    const cancel = cancelWrite(writes[0] ?? orderWrite())
    await made(cancel)
    const found = await list()
    expect(idsOf(found)).toEqual(newestFirst(writes))
    expect(found.kind === 'found' && found.value[2]).toEqual({
      id: cancel.order.id,
      version: 2,
      json: cancel.order.json,
    })
  })

  it('shows every acknowledged write to the next list', async () => {
    const missed: string[] = []
    const writeAndList = async (_: unknown, n: number) => {
      const customerId = `customer-${n % 4}`
      for (let rounds = 0; rounds < 15; rounds++) {
        const write = orderWrite({ customerId })
        const versionOf = async () => {
          const found = await list(customerId)
          return found.kind === 'found' && found.value.find(({ id }) => id === write.order.id)?.version
        }
        await made(write)
        if ((await versionOf()) !== 1) missed.push('made')
        await made(cancelWrite(write))
        if ((await versionOf()) !== 2) missed.push('cancelled')
      }
    }
    await Promise.all(Array.from({ length: 8 }, writeAndList))
    expect(missed).toEqual([])
  })

  it('answers look-ups of every kind that are asked at once, each with its own', async () => {
    const writes = Array.from({ length: 3 }, () => orderWrite())
    await made(...writes)
    const [first = orderWrite()] = writes
    const found = await Promise.all([
      list('customer-1', { limit: 2 }),
      tested.store.findOrder('tenant-1', first.order.id, never()),
      list('nobody'),
      tested.store.findReply(first, never()),
      tested.store.findOrder('tenant-1', someId(), never()),
      list(),
    ])
    const ids = newestFirst(writes)
    expect([idsOf(found[0]), idsOf(found[2]), idsOf(found[5])]).toEqual([ids.slice(0, 2), [], ids])
    expect([found[1], found[3], found[4]]).toMatchObject([
      { kind: 'found', value: { json: first.order.json } },
      { kind: 'found', value: { location: first.reply.location, json: first.order.json } },
      { kind: 'absent' },
    ])
  })

  it.each(['a_b', 'A.B:C-d', '__proto__', "'; DROP TABLE orders", '%', '~'.repeat(64)])(
    'takes a hostile customer for an ordinary one: %s',
    async customerId => {
      const write = orderWrite({ customerId })
      await made(write, orderWrite({ customerId: `${customerId}x` }), orderWrite({ customerId: 'axb' }))
      expect(idsOf(await list(customerId))).toEqual([write.order.id])
    },
  )

  it('keeps a long list of large orders whole', async () => {
    const writes = Array.from({ length: 100 }, () => orderWrite({ json: JSON.stringify('é'.repeat(10_000)) }))
    await made(...writes)
    const found = await list()
    expect(idsOf(found)).toEqual(newestFirst(writes))
    expect(found.kind === 'found' && found.value.every(({ json }) => json === writes[0]?.order.json)).toBe(
      true,
    )
  })

  it('lets go of who stops waiting, and of the signal of who does not', async () => {
    const controller = new AbortController()
    await list('customer-1', { signal: controller.signal })
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
    expect(await list('customer-1', { signal: AbortSignal.abort() })).toEqual({ kind: 'withdrawn' })
    await tested.store.close()
    expect(await list()).toEqual({ kind: 'unavailable' })
  })
}

function newestFirst(writes: readonly OrderWrite[]): string[] {
  return writes
    .map(({ order }) => order.id)
    .sort()
    .reverse()
}

function idsOf(found: Lookup<readonly ListedOrder[]>): string[] {
  if (found.kind !== 'found') throw new TypeError(`the list is ${found.kind}`)
  return found.value.map(({ id }) => id)
}
