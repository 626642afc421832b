import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { OrderWrite } from '../../src/store/index.ts'
import { GroupCommit } from '../../src/store/sqlite/group-commit.ts'
import { migrate } from '../../src/store/sqlite/migrations.ts'
import { CLAIM, type Flat, packWrite, VERDICT } from '../../src/store/sqlite/protocol.ts'
import { cancelWrite, orderWrite } from '../support/order-write.ts'

const { passedOver, created, taken, unavailable, outdated } = VERDICT

describe('group commit', () => {
  let db: Database.Database
  let slots: Int32Array<SharedArrayBuffer>
  let group: GroupCommit

  beforeEach(() => {
    db = new Database(':memory:')
    migrate(db)
    slots = new Int32Array(new SharedArrayBuffer(256))
    group = new GroupCommit(db, slots)
  })
  afterEach(() => db.close())

  function answer(...writes: OrderWrite[]) {
    const packed: Flat = []
    for (const write of writes) packWrite(packed, write)
    return group.answer(packed)
  }

  const rows = () =>
    ['idempotency', 'orders', 'outbox'].map(table =>
      db.prepare(`SELECT count(*) FROM ${table}`).pluck().get(),
    )

  it('writes key, order and event', () => {
    const write = orderWrite()
    expect(answer(write)).toEqual({ kind: 'answered', values: [created], proven: true })
    expect(db.prepare('SELECT * FROM idempotency').get()).toEqual({
      tenant: 'tenant-1',
      operation: 'orders.create',
      key: write.key,
      fingerprint: write.fingerprint,
      status: 201,
      headers: JSON.stringify({ location: write.reply.location, version: 1 }),
      body: write.order.json,
      created_at: write.atMs,
    })
    expect(db.prepare('SELECT * FROM orders').get()).toEqual({
      id: write.order.id,
      tenant: 'tenant-1',
      customer_id: 'customer-1',
      status: 'accepted',
      version: 1,
      body: write.order.json,
      created_at: write.atMs,
      updated_at: write.atMs,
      event: 1,
    })
    expect(db.prepare('SELECT * FROM outbox').get()).toEqual({
      sequence: 1,
      event_id: write.event.id,
      type: 'order.created',
      subject: write.order.id,
      tenant: 'tenant-1',
      traceparent: write.event.traceparent,
      time: write.atMs,
      data: write.order.json,
      after: null,
    })
  })

  it('replaces a version: the order’s status, version, body and time of change, and nothing else of it', () => {
    const create = orderWrite()
    const cancel = cancelWrite(create)
    const moved = { ...cancel, order: { ...cancel.order, customerId: 'another' } }
    answer(create)
    slots.fill(CLAIM.queued)
    expect(answer(moved)).toEqual({ kind: 'answered', values: [created], proven: true })
    expect(db.prepare('SELECT * FROM orders').all()).toEqual([
      {
        id: create.order.id,
        tenant: 'tenant-1',
        customer_id: 'customer-1',
        status: 'cancelled',
        version: 2,
        body: cancel.order.json,
        created_at: create.atMs,
        updated_at: cancel.atMs,
        event: 2,
      },
    ])
    expect(db.prepare('SELECT operation, key, status, headers, body FROM idempotency').all()[1]).toEqual({
      operation: 'orders.cancel',
      key: cancel.key,
      status: 200,
      headers: JSON.stringify({ location: create.reply.location, version: 2 }),
      body: cancel.order.json,
    })
    expect(db.prepare('SELECT * FROM outbox').all()[1]).toEqual({
      sequence: 2,
      event_id: cancel.event.id,
      type: 'order.cancelled',
      subject: create.order.id,
      tenant: 'tenant-1',
      traceparent: cancel.event.traceparent,
      time: cancel.atMs,
      data: cancel.order.json,
      after: 1,
    })
  })

  it.each([
    ['alone', []],
    ['beside a bad row', [{ ...orderWrite(), atMs: {} as number }]],
  ])('takes nothing but its own key back when a write is outdated: %s', (_, bad) => {
    const [early, late, create] = [cancelWrite(orderWrite()), orderWrite(), orderWrite()]
    const group = [create, cancelWrite(create), cancelWrite(create, { key: 'too late' }), early, late, ...bad]
    const { values, fault } = answer(...group)
    expect(values.slice(0, 5)).toEqual([created, created, outdated, outdated, created])
    expect(fault).toBeUndefined()
    expect(db.prepare('SELECT key FROM idempotency ORDER BY rowid').pluck().all()).toEqual([
      create.key,
      `cancel-${create.order.id}`,
      late.key,
    ])
    expect(db.prepare('SELECT subject, type FROM outbox ORDER BY sequence').raw().all()).toEqual([
      [create.order.id, 'order.created'],
      [create.order.id, 'order.cancelled'],
      [late.order.id, 'order.created'],
    ])
  })

  it('leaves the version as it was when the event of a cancel is the row that fails', () => {
    db.exec(
      `CREATE TRIGGER t BEFORE INSERT ON outbox WHEN new.type = 'order.cancelled' BEGIN SELECT RAISE(ABORT, 'no'); END`,
    )
    const create = orderWrite()
    expect(answer(create, cancelWrite(create), orderWrite()).values).toEqual([created, unavailable, created])
    expect(db.prepare('SELECT version, status, body FROM orders LIMIT 1').raw().get()).toEqual([
      1,
      'accepted',
      create.order.json,
    ])
    expect(rows()).toEqual([2, 2, 2])
  })

  it('passes over what was taken back, and claims the rest', () => {
    slots[1] = CLAIM.withdrawn
    expect(answer(orderWrite(), orderWrite(), orderWrite()).values).toEqual([created, passedOver, created])
    expect([...slots.slice(0, 3)]).toEqual([CLAIM.claimed, CLAIM.withdrawn, CLAIM.claimed])
    expect(rows()).toEqual([2, 2, 2])
  })

  it('gives the second write with a key the reply of the first, in one group', () => {
    const [first, second] = [orderWrite({ key: 'k' }), orderWrite({ key: 'k', fingerprint: '0'.repeat(64) })]
    expect(answer(first, second).values).toEqual([
      created,
      taken,
      first.fingerprint,
      201,
      first.reply.location,
      1,
      first.order.json,
    ])
    expect(rows()).toEqual([1, 1, 1])
  })

  it('lets a bad row fail alone: a violation that is not the key', () => {
    const old = orderWrite()
    answer(old)
    slots[2] = CLAIM.withdrawn
    slots.fill(CLAIM.queued, 0, 2)
    const { values, fault, reason } = answer(
      orderWrite(),
      orderWrite({ id: old.order.id, key: 'new' }),
      orderWrite(),
      orderWrite(),
    )
    expect(values).toEqual([created, unavailable, passedOver, created])
    expect(fault).toBeUndefined()
    expect(reason).toMatch(/^SQLITE_CONSTRAINT_PRIMARYKEY: /)
    expect(rows()).toEqual([3, 3, 3])
  })

  it('lets a bad row fail alone: a value that the driver refuses', () => {
    const bad = { ...orderWrite(), atMs: {} as number }
    const { values, fault } = answer(orderWrite(), bad, orderWrite())
    expect({ values, fault }).toEqual({ values: [created, unavailable, created], fault: undefined })
    expect(rows()).toEqual([2, 2, 2])
  })

  it('lets a bad row fail alone when its last insert is the one that fails', () => {
    db.exec(
      `CREATE TRIGGER t BEFORE INSERT ON outbox WHEN new.tenant = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END`,
    )
    expect(answer(orderWrite(), orderWrite({ tenant: 'bad' })).values).toEqual([created, unavailable])
    expect(rows()).toEqual([1, 1, 1])
  })

  it('fails the whole group when SQLite has rolled it back by itself', () => {
    db.exec(
      `CREATE TRIGGER t BEFORE INSERT ON outbox WHEN new.tenant = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END`,
    )
    const { values, fault } = answer(orderWrite(), orderWrite({ tenant: 'bad' }), orderWrite())
    expect({ values, fault }).toEqual({ values: [unavailable, unavailable, unavailable], fault: 'refused' })
    expect(rows()).toEqual([0, 0, 0])
    expect(answer()).toEqual({ kind: 'answered', values: [], proven: true })
  })

  it('fails the whole group also when that happens at the second try', () => {
    db.exec(`
      CREATE TRIGGER a BEFORE INSERT ON outbox WHEN new.tenant = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END;
      CREATE TRIGGER b BEFORE INSERT ON outbox WHEN new.tenant = 'worse' BEGIN SELECT RAISE(ROLLBACK, 'no'); END`)
    const { values, fault, reason } = answer(
      orderWrite(),
      orderWrite({ tenant: 'bad' }),
      orderWrite({ tenant: 'worse' }),
    )
    expect({ values, fault, reason }).toEqual({
      values: [unavailable, unavailable, unavailable],
      fault: 'refused',
      reason: 'SQLITE_CONSTRAINT_TRIGGER: no',
    })
    expect(rows()).toEqual([0, 0, 0])
    expect(answer()).toEqual({ kind: 'answered', values: [], proven: true })
  })

  it('fails the whole group when the disk is full, and works again once it is not', () => {
    const pages = db.pragma('page_count', { simple: true })
    db.pragma(`max_page_count = ${pages}`)
    const writes = Array.from({ length: 40 }, () => orderWrite({ json: 'x'.repeat(2_000) }))
    const full = answer(...writes)
    expect(full).toMatchObject({ fault: 'full', values: Array(40).fill(unavailable) })
    expect(rows()).toEqual([0, 0, 0])
    db.pragma('max_page_count = 1000000')
    slots.fill(CLAIM.queued)
    expect(answer(...writes).values).toEqual(Array(40).fill(created))
  })

  it('proves nothing when it stored nothing: a replay, an outdated write, a write passed over', () => {
    const [write, other] = [orderWrite(), orderWrite()]
    answer(write)
    slots.fill(CLAIM.queued)
    expect(answer(write)).toMatchObject({
      values: [taken, expect.anything(), 201, expect.anything(), 1, expect.anything()],
      proven: false,
    })
    slots.fill(CLAIM.queued)
    expect(answer(cancelWrite(other))).toMatchObject({ values: [outdated], proven: false })
    slots.fill(CLAIM.withdrawn)
    expect(answer(other)).toMatchObject({ values: [passedOver], proven: false })
  })

  it('claims nothing before it has the lock', () => {
    // A transaction that is open already makes BEGIN fail, as a lock held elsewhere does.
    db.exec('BEGIN IMMEDIATE')
    const { values, fault } = answer(orderWrite(), orderWrite())
    expect({ values, fault }).toEqual({ values: [unavailable, unavailable], fault: 'refused' })
    expect([...slots.slice(0, 2)]).toEqual([CLAIM.queued, CLAIM.queued])
  })

  it('answers an empty group with a write that changes nothing', () => {
    const folder = mkdtempSync(join(tmpdir(), 'punctual-group-'))
    const file = new Database(join(folder, 'x.db'))
    migrate(file)
    const other = new Database(join(folder, 'x.db'))
    const state = () => [
      other.pragma('data_version', { simple: true }),
      other.pragma('user_version', { simple: true }),
      other.pragma('schema_version', { simple: true }),
    ]
    const [written, ...rest] = state()
    expect(new GroupCommit(file, slots).answer([])).toEqual({ kind: 'answered', values: [], proven: true })
    expect(state()[0]).not.toBe(written)
    expect(state().slice(1)).toEqual(rest)
    for (const connection of [file, other]) connection.close()
    rmSync(folder, { recursive: true })
  })
})
