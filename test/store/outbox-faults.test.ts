import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { GroupCommit } from '../../src/store/sqlite/group-commit.ts'
import { migrate } from '../../src/store/sqlite/migrations.ts'
import { CLAIM, type Flat, ITEM, packWrite, VERDICT } from '../../src/store/sqlite/protocol.ts'
import { startWorker, type ThreadPort } from '../../src/store/sqlite/thread.ts'
import { never, orderWrite } from '../support/order-write.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'

const ASK = { limit: 10, leaseMs: 1_000, atMs: 5_000 }

describe('the outbox of a store that cannot work', () => {
  let place: SqlitePlace
  beforeEach(() => {
    place = new SqlitePlace()
  })
  afterEach(() => place.dispose())

  it('locked by another process: unavailable, nothing lost, and well again while only claims come', async () => {
    const store = await place.open({ busyTimeoutMs: 20 })
    const { outbox } = store
    const writes = [orderWrite(), orderWrite()]
    for (const write of writes) await store.commit(write, never())
    const first = await outbox.claim({ ...ASK, limit: 1 })
    if (first.kind !== 'claimed') throw new Error(first.kind)
    const backlog = await outbox.measure(never())

    const other = place.connect()
    other.exec('BEGIN IMMEDIATE')
    const settlement = { token: first.token, atMs: ASK.atMs, exceptions: [] }
    expect(await outbox.claim(ASK)).toEqual({ kind: 'unavailable' })
    expect(await outbox.settle(settlement)).toBe('unavailable')
    const purge = { atMs: ASK.atMs, madeBeforeMs: ASK.atMs, limit: 1, after: 0 }
    expect(await outbox.purgeDelivered(purge)).toBeUndefined()
    expect(await store.purgeKeys(purge)).toBeUndefined()
    expect(await outbox.measure(never())).toEqual(backlog)
    expect(store.degraded()).toBe('another process holds the store locked')
    other.exec('ROLLBACK')
    other.close()

    const second = await outbox.claim(ASK)
    expect(second).toMatchObject({ events: [{ id: writes[1]?.event.id }] })
    expect(await outbox.settle(settlement)).toBe('settled')
    expect(await outbox.measure(never())).toMatchObject({ value: { pending: 1, dead: 0 } })
    expect(store.degraded()).toBeUndefined()
  })

  it('locked by another process: does not tell how many were redriven, and redrives the rest afterwards', async () => {
    const { commit, outbox } = await place.open({ busyTimeoutMs: 20 })
    await commit(orderWrite(), never())
    const claim = await outbox.claim(ASK)
    if (claim.kind !== 'claimed') throw new Error(claim.kind)
    const exceptions = claim.events.map(({ sequence }) => {
      return { sequence, attempts: 1, dueAtMs: undefined, reason: 'it was refused' }
    })
    await outbox.settle({ token: claim.token, atMs: ASK.atMs, exceptions })
    const other = place.connect()
    other.exec('BEGIN IMMEDIATE')
    expect(await outbox.redrive('all', ASK.atMs)).toBeUndefined()
    other.exec('ROLLBACK')
    other.close()
    expect(await outbox.redrive('all', ASK.atMs)).toBe(1)
  })

  it('without its reader: unavailable, and handed back at once', async () => {
    let reader: ThreadPort | undefined
    const store = await place.open({}, {}, (file, data, listener) => {
      const port = startWorker(file, data, listener)
      if (file.pathname.endsWith('/reader.ts')) reader = port
      return port
    })
    const write = orderWrite()
    await store.commit(write, never())
    const down = place.nextHealth()
    // Nothing that a batch could be: the thread ends.
    reader?.post(null as never)
    expect(await down).toBe('the store is being started again')
    const recovered = place.nextHealth()
    expect(await store.outbox.claim(ASK)).toEqual({ kind: 'unavailable' })
    await recovered
    expect(await store.outbox.claim(ASK)).toMatchObject({
      kind: 'claimed',
      events: [{ id: write.event.id, attempts: 0 }],
    })
  })
})

describe('the outbox of a full disk', () => {
  const ORDERS = 60
  const { created, done, unavailable } = VERDICT
  let db: Database.Database
  let slots: Int32Array<SharedArrayBuffer>
  let group: GroupCommit

  beforeEach(() => {
    db = new Database(':memory:')
    migrate(db)
    slots = new Int32Array(new SharedArrayBuffer(256))
    group = new GroupCommit(db, slots)
    const batch: Flat = []
    for (let n = 0; n < ORDERS; n++) packWrite(batch, orderWrite())
    expect(answer(batch).values).toEqual(Array(ORDERS).fill(created))
  })
  afterEach(() => db.close())

  /** Every batch finds its places free. */
  function answer(batch: Flat) {
    slots.fill(CLAIM.queued)
    return group.answer(batch)
  }

  const contents = () =>
    ['outbox_reach', 'outbox_claims', 'outbox_held'].map(table => db.prepare(`SELECT * FROM ${table}`).all())
  const settle: Flat = [
    ITEM.settle,
    1,
    JSON.stringify(
      Array.from({ length: ORDERS }, (_, n) => {
        return { sequence: n + 1, attempts: 1, dueAtMs: 9_000, reason: 'x'.repeat(1_000) }
      }),
    ),
    '[]',
  ]

  it('keeps a claim whole that cannot be settled, and settles it afterwards', () => {
    expect(answer([ITEM.claim, 200, 1_000, 5_000]).values).toEqual([done, 3, 1, 1, ORDERS])
    const before = contents()
    db.pragma(`max_page_count = ${db.pragma('page_count', { simple: true })}`)
    expect(answer(settle)).toMatchObject({ values: [unavailable], fault: 'full', proven: false })
    expect(contents()).toEqual(before)
    db.pragma('max_page_count = 1000000')
    expect(answer(settle)).toEqual({ kind: 'answered', values: [done, 1, 1], proven: true })
    expect(db.prepare('SELECT count(*) FROM outbox_held').pluck().get()).toBe(ORDERS)
  })

  it('claims nothing by halves, and all of it afterwards', () => {
    answer([ITEM.claim, 200, 1_000, 5_000])
    answer(settle)
    const before = contents()
    // The claim is done when the orders behind it find no room.
    db.pragma(`max_page_count = ${db.pragma('page_count', { simple: true })}`)
    const many: Flat = []
    for (let n = 0; n < 40; n++) packWrite(many, orderWrite({ json: 'x'.repeat(2_000) }))
    const full = answer([ITEM.claim, 200, 1_000, 9_000, ...many])
    expect(full).toMatchObject({ fault: 'full', values: Array(41).fill(unavailable) })
    expect(contents()).toEqual(before)
    db.pragma('max_page_count = 1000000')
    const [, , token] = answer([ITEM.claim, 200, 1_000, 9_000]).values
    expect(db.prepare('SELECT count(*) FROM outbox_held WHERE token = ?').pluck().get(token)).toBe(ORDERS)
  })

  it('lets a settlement that cannot be read fail alone', () => {
    const batch: Flat = [ITEM.claim, 2, 1_000, 5_000, ITEM.settle, 1, '{', '[]', ITEM.claim, 2, 1_000, 5_000]
    const { values, fault } = answer(batch)
    expect({ values, fault }).toEqual({
      values: [done, 3, 1, 1, 2, unavailable, done, 3, 2, 3, 4],
      fault: undefined,
    })
  })

  it('shows by what it wrote that it works, and by nothing else', () => {
    expect(answer([ITEM.claim, 200, 1_000, 5_000]).proven).toBe(true)
    for (const idle of [
      [ITEM.claim, 200, 1_000, 5_000],
      [ITEM.settle, 99, '[]', '[]'],
      [ITEM.redrive, '[1]', 0],
      [ITEM.purge, 'events', 0, 0, 10, 0],
      [ITEM.purge, 'keys', 0, 0, 10, 0],
      [ITEM.handBack, 99],
    ]) {
      expect(answer(idle).proven).toBe(false)
    }
    expect(answer([ITEM.settle, 1, '[]', '[]']).proven).toBe(true)
  })
})
