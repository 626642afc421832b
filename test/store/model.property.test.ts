import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { OrderWrite, Store } from '../../src/store/index.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { cancelWrite, never, orderWrite, someId } from '../support/order-write.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'

/**
 * Random groups of writes that concern a few orders, keys, customers and tenants, given to the embedded store and
 * to the one in memory: both say the same of each write and show the same afterwards. The one in memory judges a
 * write at a time, so this also holds each write of a group against its neighbours.
 */
const place = new SqlitePlace()
let sqlite: Store
beforeAll(async () => {
  sqlite = await place.open()
})
afterAll(() => place.dispose())

interface Choice {
  readonly tenant: number
  readonly customer: number
  readonly order: number
  readonly key: number
  readonly version: number
}

const few = fc.nat({ max: 3 })
const choice: fc.Arbitrary<Choice> = fc.record({
  tenant: fc.nat({ max: 1 }),
  customer: few,
  order: few,
  key: fc.nat({ max: 11 }),
  version: fc.constantFrom(1, 1, 1, 2, 2, 3, 0),
})
const step = fc.record({
  group: fc.array(choice, { minLength: 1, maxLength: 10 }),
  customer: few,
  limit: fc.integer({ min: 1, max: 4 }),
  before: fc.option(few, { nil: undefined }),
})

/** What the caller of each write was told: whether its hook ran, and the verdict. */
async function together(store: Store, writes: readonly OrderWrite[]): Promise<unknown[]> {
  const hooks = writes.map(() => 0)
  const verdicts = await Promise.all(
    writes.map((write, n) =>
      store.commit(write, never(), () => {
        hooks[n] = (hooks[n] ?? 0) + 1
      }),
    ),
  )
  return verdicts.map((verdict, n) => ({ durable: hooks[n], ...verdict }))
}

it('does what the model does, write for write and look for look', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async steps => {
      const memory = new MemoryStore()
      // Names that nothing in the file has: all runs share it, as each open costs as much as ten runs.
      const world = someId()
      const ids = Array.from({ length: 4 }, someId)
      const tenants = [`${world}-1`, `${world}-2`]
      const writeOf = ({ tenant, customer, order, key, version }: Choice): OrderWrite => {
        const create = orderWrite({
          tenant: tenants[tenant] ?? '',
          customerId: `customer-${customer}`,
          id: ids[order] ?? '',
          key: `key-${key}`,
        })
        return version === 1 ? create : cancelWrite(create, { version, key: `key-${key}` })
      }
      for (const { group, customer, limit, before } of steps) {
        const writes = group.map(writeOf)
        const told = await together(sqlite, writes)
        expect(told).toEqual(await together(memory, writes))
        for (const verdict of told) seen.add((verdict as { kind: string }).kind)

        const page = { limit, before: before === undefined ? undefined : ids[before] }
        const looks = (store: Store) =>
          Promise.all([
            ...tenants.map(tenant => store.findOrders(tenant, `customer-${customer}`, page, never())),
            ...writes.map(write => store.findReply(write, never())),
            ...tenants.flatMap(tenant => ids.map(id => store.findOrder(tenant, id, never()))),
          ])
        const shown = await looks(sqlite)
        expect(shown).toEqual(await looks(memory))
        for (const look of shown) if (look.kind === 'found' && Array.isArray(look.value)) seen.add('list')
      }
      expect(rowsOf(world)).toEqual([memory.keys, memory.orders, memory.events])
    }),
    { numRuns: 100 },
  )
  // The groups were of every kind, or they prove nothing.
  expect([...seen].sort()).toEqual(['created', 'list', 'outdated', 'taken', 'unavailable'])
}, 60_000)

function rowsOf(world: string): unknown[] {
  const db = place.connect()
  const count = (table: string) =>
    db.prepare(`SELECT count(*) FROM ${table} WHERE tenant LIKE ? || '%'`).pluck().get(world)
  const rows = ['idempotency', 'orders', 'outbox'].map(count)
  db.close()
  return rows
}
