import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { OrderWrite, Store } from '../../../src/store/index.ts'
import type { StoreUnderTest } from '../../contracts/store.contract.ts'
import { cancelWrite, never, orderWrite } from '../../support/order-write.ts'

/** What every driver promises about a write that replaces a version. */
export function cancelsContract(tested: StoreUnderTest): void {
  /** All at once, and so in one group where a driver has groups. */
  async function together(...writes: OrderWrite[]): Promise<string[]> {
    const verdicts = await Promise.all(writes.map(write => tested.store.commit(write, never())))
    return verdicts.map(({ kind }) => kind)
  }

  async function made(): Promise<OrderWrite> {
    const write = orderWrite()
    expect(await together(write)).toEqual(['created'])
    return write
  }

  it('replaces the version before it, in one with its key and its event', async () => {
    const create = await made()
    const cancel = cancelWrite(create)
    expect(await together(cancel)).toEqual(['created'])
    await tested.store.close()
    tested.store = await tested.harness.open()
    const { store } = tested
    expect(await newest(store, create)).toEqual({ version: 2, json: cancel.order.json })
    expect(await store.findReply(cancel, never())).toEqual({
      kind: 'found',
      value: {
        fingerprint: cancel.fingerprint,
        status: 200,
        location: create.reply.location,
        version: 2,
        json: cancel.order.json,
      },
    })
    expect(await tested.harness.rows()).toEqual({ keys: 2, orders: 1, events: 2 })
  })

  it('leaves the first reply as it was, byte for byte', async () => {
    const create = await made()
    expect(await together(cancelWrite(create))).toEqual(['created'])
    const reply = { fingerprint: create.fingerprint, ...create.reply, version: 1, json: create.order.json }
    expect(await tested.store.findReply(create, never())).toEqual({ kind: 'found', value: reply })
    expect(await tested.store.commit(create, never())).toEqual({ kind: 'taken', reply })
  })

  it.each<[string, (order: OrderWrite) => OrderWrite]>([
    ['no such order', () => cancelWrite(orderWrite())],
    ["another tenant's", order => ({ ...cancelWrite(order), tenant: 'tenant-2' })],
    ['a version too many', order => cancelWrite(order, { version: 3 })],
    ['no version', order => cancelWrite(order, { version: 0 })],
  ])('stores nothing of an outdated write: %s', async (_, outdated) => {
    const create = await made()
    const write = outdated(create)
    expect(await tested.store.commit(write, never())).toEqual({ kind: 'outdated' })
    expect(await tested.store.findReply(write, never())).toEqual({ kind: 'absent' })
    expect(await newest(tested.store, create)).toEqual({ version: 1, json: create.order.json })
    expect(await tested.harness.rows()).toEqual({ keys: 1, orders: 1, events: 1 })
    expect(tested.store.degraded()).toBeUndefined()
    // The key stays free.
    const { tenant } = write
    const other = orderWrite({ tenant })
    expect(await together(other, cancelWrite(other, { key: write.key }))).toEqual(['created', 'created'])
  })

  it('cancels once', async () => {
    const create = await made()
    const [first, second] = [cancelWrite(create), cancelWrite(create, { key: 'another' })]
    expect(await together(first)).toEqual(['created'])
    expect(await together(second)).toEqual(['outdated'])
    expect(await newest(tested.store, create)).toEqual({ version: 2, json: first.order.json })
  })

  it('judges the key before the version', async () => {
    const create = await made()
    const cancel = cancelWrite(create)
    await together(cancel)
    const { key } = cancel
    for (const again of [
      cancel,
      cancelWrite(create, { key, fingerprint: '0'.repeat(64) }),
      cancelWrite(create, { key, version: 3 }),
      cancelWrite(orderWrite(), { key }),
    ]) {
      const verdict = await tested.store.commit(again, never())
      expect(verdict).toMatchObject({ kind: 'taken', reply: { version: 2, json: cancel.order.json } })
    }
    expect(await newest(tested.store, create)).toEqual({ version: 2, json: cancel.order.json })
    expect(await tested.harness.rows()).toEqual({ keys: 2, orders: 1, events: 2 })
  })

  it('gives each operation keys of its own', async () => {
    const create = await made()
    expect(await together(cancelWrite(create, { key: create.key }))).toEqual(['created'])
  })

  it('keeps the customer whom the order was made for', async () => {
    const create = await made()
    const cancel = cancelWrite({ ...create, order: { ...create.order, customerId: 'another' } })
    expect(await together(cancel)).toEqual(['created'])
    const list = async (customerId: string) => {
      const page = { limit: 10, before: undefined }
      return await tested.store.findOrders('tenant-1', customerId, page, never())
    }
    expect(await list(create.order.customerId)).toMatchObject({ value: [{ version: 2 }] })
    expect(await list('another')).toEqual({ kind: 'found', value: [] })
  })

  it.each<[string, (order: OrderWrite) => OrderWrite[], string[], number]>([
    ['made and cancelled', order => [order, cancelWrite(order)], ['created', 'created'], 2],
    ['cancelled before it is made', order => [cancelWrite(order), order], ['outdated', 'created'], 1],
    [
      'cancelled under two keys',
      order => [order, cancelWrite(order), cancelWrite(order, { key: 'other' })],
      ['created', 'created', 'outdated'],
      2,
    ],
    [
      'cancelled twice under one key',
      order => [order, cancelWrite(order), cancelWrite(order)],
      ['created', 'created', 'taken'],
      2,
    ],
    [
      'an outdated key that is used again',
      order => [cancelWrite(order, { key: 'k' }), order, cancelWrite(order, { key: 'k' })],
      ['outdated', 'created', 'created'],
      2,
    ],
    [
      'one version after the other',
      order => [order, ...[2, 3, 4].map(version => cancelWrite(order, { version, key: `to ${version}` }))],
      ['created', 'created', 'created', 'created'],
      4,
    ],
  ])(
    'judges writes of one group on the same order one after the other: %s',
    async (_, group, kinds, version) => {
      const order = orderWrite()
      const writes = group(order)
      expect(await together(...writes)).toEqual(kinds)
      expect(await newest(tested.store, order)).toMatchObject({ version })
      const stored = kinds.filter(kind => kind === 'created').length
      expect(await tested.harness.rows()).toEqual({ keys: stored, orders: 1, events: stored })
    },
  )

  it('lets one of 50 parallel cancels through', async () => {
    const create = await made()
    const cancels = Array.from({ length: 50 }, (_, n) => cancelWrite(create, { key: `cancel ${n}` }))
    expect((await together(...cancels)).sort()).toEqual(['created', ...Array(49).fill('outdated')])
    expect(await tested.harness.rows()).toEqual({ keys: 2, orders: 1, events: 2 })
  })

  it('lets a bad and an outdated write of a group fail alone', async () => {
    const [old, other] = [await made(), await made()]
    const fresh = orderWrite()
    const kinds = await together(
      cancelWrite(orderWrite()),
      fresh,
      cancelWrite(old),
      // Its key is new, its order exists.
      orderWrite({ id: other.order.id, key: 'bad' }),
      cancelWrite(old, { key: 'too late' }),
      cancelWrite(fresh),
      cancelWrite(other),
    )
    expect(kinds).toEqual(['outdated', 'created', 'created', 'unavailable', 'outdated', 'created', 'created'])
    for (const order of [old, other, fresh]) {
      expect(await newest(tested.store, order)).toMatchObject({ version: 2 })
    }
    expect(await tested.harness.rows()).toEqual({ keys: 6, orders: 3, events: 6 })
  })

  it('tells the truth about cancels that are aborted at any moment', async () => {
    const cases = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        const create = await made()
        const cancel = cancelWrite(create)
        const controller = new AbortController()
        const verdict = tested.store.commit(cancel, controller.signal)
        for (let turns = 0; turns < n % 10; turns++) await turn()
        controller.abort()
        return { create, cancel, kind: (await verdict).kind }
      }),
    )
    // A close finishes what was taken, so nothing lands while this looks.
    await tested.store.close()
    tested.store = await tested.harness.open()
    const wrong: string[] = []
    for (const { create, cancel, kind } of cases) {
      const { version } = await newest(tested.store, create)
      const reply = await tested.store.findReply(cancel, never())
      if (kind !== 'unknown' && kind !== (version === 2 ? 'created' : 'withdrawn')) wrong.push(kind)
      if (reply.kind !== (version === 2 ? 'found' : 'absent')) wrong.push('half')
    }
    expect(wrong).toEqual([])
  })
}

async function newest(
  store: Store,
  { tenant, order }: OrderWrite,
): Promise<{ version: number; json: string }> {
  const found = await store.findOrder(tenant, order.id, never())
  if (found.kind !== 'found') throw new TypeError(`the order is ${found.kind}`)
  return found.value
}
