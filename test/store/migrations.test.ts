import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { MigrationError, migrate, SCHEMA_VERSION } from '../../src/store/sqlite/migrations.ts'
import { SELECT_ORDERS } from '../../src/store/sqlite/statements.ts'
import { cancelWrite, never, orderWrite } from '../support/order-write.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'
import { makeSchema1, makeSchema2 } from './old-schemas.ts'

const version = (db: Database.Database) => db.pragma('user_version', { simple: true })
const tables = (db: Database.Database) =>
  db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`).pluck().all()

/** Every table and index, without the comments and the white space of what made it. */
const schema = (db: Database.Database) =>
  db
    .prepare<[], { name: string; sql: string | null }>('SELECT name, sql FROM sqlite_schema ORDER BY name')
    .all()
    .map(({ name, sql }) => [name, sql?.replaceAll(/--.*|\s+/g, '')])

describe('migrations', () => {
  it('bring a new database to the newest version, and leave that alone', () => {
    const db = new Database(':memory:')
    migrate(db)
    expect(version(db)).toBe(SCHEMA_VERSION)
    expect(tables(db)).toEqual([
      'idempotency',
      'orders',
      'outbox',
      'outbox_claims',
      'outbox_held',
      'outbox_reach',
      'sqlite_sequence',
    ])
    const changes = db.prepare('SELECT total_changes()').pluck().get()
    migrate(db)
    expect(db.prepare('SELECT total_changes()').pluck().get()).toBe(changes)
  })

  it('go on from where the database stands', () => {
    const db = new Database(':memory:')
    migrate(db, ['CREATE TABLE one (x)'])
    migrate(db, ['CREATE TABLE one (x)', 'CREATE TABLE two (x)', 'CREATE TABLE three (x)'])
    expect([version(db), tables(db)]).toEqual([3, ['one', 'three', 'two']])
  })

  it.each([
    [1, makeSchema1],
    [2, makeSchema2],
  ])('make of a version %d database what they make of a new one, and keep its rows', (_, makeSchema) => {
    const [old, fresh] = [new Database(':memory:'), new Database(':memory:')]
    const [one, two] = [orderWrite(), orderWrite()]
    makeSchema(old, [one, two, cancelWrite(one)])
    const contents = () =>
      ['idempotency', 'orders', 'outbox'].map(t => old.prepare<[], object>(`SELECT * FROM ${t}`).all())
    const [keys = [], orders = [], events = []] = contents()
    migrate(old)
    migrate(fresh)
    expect([version(old), version(fresh)]).toEqual([SCHEMA_VERSION, SCHEMA_VERSION])
    expect(schema(old)).toEqual(schema(fresh))
    const [newest, before] = [
      [3, 2],
      [null, null, 1],
    ]
    expect(contents()).toEqual([
      keys,
      orders.map((row, n) => ({ ...row, event: newest?.[n] })),
      events.map((row, n) => ({ ...row, after: before?.[n] })),
    ])
  })

  it.each([
    [1, makeSchema1],
    [2, makeSchema2],
  ])('let the events of a version %d database be claimed, per order in order', async (_, makeSchema) => {
    const place = new SqlitePlace()
    try {
      const [one, two] = [orderWrite(), orderWrite()]
      mkdirSync(dirname(place.path))
      const db = place.connect()
      makeSchema(db, [one, cancelWrite(one), two])
      db.close()
      const store = await place.open()
      expect(await store.commit(cancelWrite(two), never())).toEqual({ kind: 'created' })
      const claimed = async (atMs: number, limit: number) => {
        const verdict = await store.outbox.claim({ limit, leaseMs: 10_000, atMs })
        if (verdict.kind !== 'claimed') throw new Error(verdict.kind)
        const events = verdict.events.map(({ subject, type, json }) => [subject, type, json])
        return { ...verdict, events }
      }
      const first = await claimed(1_000, 1)
      expect(first.events).toEqual([[one.order.id, 'order.created', one.order.json]])
      // The cancel made before the migration waits for its create; the one made after it is in one claim with its own.
      const second = await claimed(1_000, 3)
      expect(second.events).toEqual([
        [two.order.id, 'order.created', two.order.json],
        [two.order.id, 'order.cancelled', cancelWrite(two).order.json],
      ])
      expect(await store.outbox.settle({ token: first.token, atMs: 1_000, exceptions: [] })).toBe('settled')
      const third = await claimed(2_000, 3)
      expect(third.events).toEqual([[one.order.id, 'order.cancelled', cancelWrite(one).order.json]])
      expect(await store.outbox.measure(never())).toEqual({
        kind: 'found',
        value: { pending: 3, dead: 0, oldestAtMs: cancelWrite(one).atMs },
      })
    } finally {
      await place.dispose()
    }
  })

  it('let a store open on a version 1 database, list what is in it, cancel and go on', async () => {
    const place = new SqlitePlace()
    try {
      const writes = Array.from({ length: 5 }, () => orderWrite())
      mkdirSync(dirname(place.path))
      const db = place.connect()
      makeSchema1(db, [...writes, orderWrite({ customerId: 'another' }), orderWrite({ tenant: 'another' })])
      db.close()
      const store = await place.open()
      const [first = orderWrite()] = writes
      const [cancel, next] = [cancelWrite(first), orderWrite()]
      expect(await store.commit(cancel, never())).toEqual({ kind: 'created' })
      expect(await store.commit(next, never())).toEqual({ kind: 'created' })
      expect(await store.commit(first, never())).toMatchObject({ kind: 'taken', reply: { version: 1 } })
      const newest = new Map([...writes, cancel, next].map(({ order }) => [order.id, order]))
      const page = { limit: 10, before: undefined }
      expect(await store.findOrders('tenant-1', 'customer-1', page, never())).toEqual({
        kind: 'found',
        value: [...newest.keys()]
          .sort()
          .reverse()
          .map(id => ({ id, version: newest.get(id)?.version, json: newest.get(id)?.json })),
      })
      expect(place.rows()).toEqual({ keys: 9, orders: 8, events: 9 })
    } finally {
      await place.dispose()
    }
  })

  it('give a customer’s list an index to go by', () => {
    const db = new Database(':memory:')
    migrate(db)
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${SELECT_ORDERS}`).all('tenant', 'customer', 'id', 1)
    expect(plan).toMatchObject([
      { detail: 'SEARCH orders USING INDEX orders_of_customer (tenant=? AND customer_id=? AND id<?)' },
    ])
  })

  it('a step that fails leaves the version before it, whole', () => {
    const db = new Database(':memory:')
    const steps = ['CREATE TABLE one (x)', 'CREATE TABLE two (x); CREATE TABLE one (x)']
    expect(() => migrate(db, steps)).toThrow(/already exists/)
    expect([version(db), tables(db), db.inTransaction]).toEqual([1, ['one'], false])
    migrate(db, [steps[0] ?? '', 'CREATE TABLE two (x)'])
    expect(version(db)).toBe(2)
  })

  it('refuse a newer database and one of another program', () => {
    const newer = new Database(':memory:')
    migrate(newer)
    newer.pragma('user_version = 99')
    expect(() => migrate(newer)).toThrow(MigrationError)
    const foreign = new Database(':memory:')
    foreign.exec('CREATE TABLE theirs (x)')
    expect(() => migrate(foreign)).toThrow('another program')
    expect([version(foreign), tables(foreign)]).toEqual([0, ['theirs']])
  })
})
