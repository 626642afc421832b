import type { Database, Statement } from 'better-sqlite3'
import { faultOf, reasonOf } from './faults.ts'
import { SCHEMA_VERSION } from './migrations.ts'
import { type Answered, CLAIM, type Flat, VERDICT, WRITE, WRITE_LENGTH } from './protocol.ts'
import * as sql from './statements.ts'
import { packHeaders, storedReplies } from './stored-replies.ts'

/**
 * Group commit: a batch of writes in one transaction and behind one fsync, yet each with a verdict of its own.
 *
 *   begin ──lock held──▶ claim ──▶ write all ──▶ commit ──▶ verdicts
 *     │                               │ a row throws
 *     │                               ▼
 *     │                            roll back ──▶ begin ──▶ write each under a savepoint ──▶ commit ──▶ verdicts
 *     ▼                                                          the bad row alone: unavailable
 *   every write: unavailable          ◀── any fault of the store, wherever it strikes
 *
 * The first pass has no savepoints: they cost 10 % of a group, and a bad row is a rarity. So is an outdated write,
 * whose key is deleted again: it is the only row that stands by then. Claims come after the lock, so that whatever
 * waits for a lock held elsewhere can still be withdrawn.
 */
export class GroupCommit {
  readonly #db: Database
  readonly #slots: Int32Array<SharedArrayBuffer>
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  readonly #savepoint: Statement
  readonly #release: Statement
  readonly #rollbackTo: Statement
  readonly #insertKey: Statement
  readonly #deleteKey: Statement
  readonly #insertOrder: Statement
  readonly #updateOrder: Statement
  readonly #insertEvent: Statement
  readonly #findReply: ReturnType<typeof storedReplies>
  /** Whether the transaction has written anything, so that its commit shows that the store works. */
  #wrote = false

  constructor(db: Database, slots: Int32Array<SharedArrayBuffer>) {
    this.#db = db
    this.#slots = slots
    this.#begin = db.prepare(sql.BEGIN)
    this.#commit = db.prepare(sql.COMMIT)
    this.#rollback = db.prepare(sql.ROLLBACK)
    this.#savepoint = db.prepare(sql.SAVEPOINT)
    this.#release = db.prepare(sql.RELEASE)
    this.#rollbackTo = db.prepare(sql.ROLLBACK_TO)
    this.#insertKey = db.prepare(sql.INSERT_KEY)
    this.#deleteKey = db.prepare(sql.DELETE_KEY)
    this.#insertOrder = db.prepare(sql.INSERT_ORDER)
    this.#updateOrder = db.prepare(sql.UPDATE_ORDER)
    this.#insertEvent = db.prepare(sql.INSERT_EVENT)
    this.#findReply = storedReplies(db)
  }

  answer(writes: Flat): Answered {
    const count = writes.length / WRITE_LENGTH
    try {
      this.#begin.run()
      this.#wrote = count === 0
      if (this.#wrote) this.#db.exec(sql.PROBE_WRITE(SCHEMA_VERSION))
      const claimed = this.#claim(count)
      return this.#together(writes, claimed) ?? this.#oneByOne(writes, claimed)
    } catch (error) {
      this.#undo()
      const values = new Array<number>(count).fill(VERDICT.unavailable)
      return {
        kind: 'answered',
        values,
        proven: false,
        fault: faultOf(error) ?? 'refused',
        reason: reasonOf(error),
      }
    }
  }

  /** For each place of the batch, whether the write is now ours. */
  #claim(count: number): boolean[] {
    return Array.from({ length: count }, (_, place) => {
      return Atomics.compareExchange(this.#slots, place, CLAIM.queued, CLAIM.claimed) === CLAIM.queued
    })
  }

  /** Undefined, and rolled back, when one row spoils it. */
  #together(writes: Flat, claimed: readonly boolean[]): Answered | undefined {
    try {
      const values: Flat = []
      for (const [place, ours] of claimed.entries()) {
        if (ours) this.#write(writes, place * WRITE_LENGTH, values)
        else values.push(VERDICT.passedOver)
      }
      this.#commit.run()
      return { kind: 'answered', values, proven: this.#wrote }
    } catch (error) {
      if (faultOf(error) !== undefined || !this.#db.inTransaction) throw error
      this.#undo()
      return undefined
    }
  }

  #oneByOne(writes: Flat, claimed: readonly boolean[]): Answered {
    const values: Flat = []
    let reason: string | undefined
    this.#wrote = false
    this.#begin.run()
    for (const [place, ours] of claimed.entries()) {
      if (!ours) {
        values.push(VERDICT.passedOver)
        continue
      }
      this.#savepoint.run()
      try {
        this.#write(writes, place * WRITE_LENGTH, values)
      } catch (error) {
        if (faultOf(error) !== undefined || !this.#db.inTransaction) throw error
        this.#rollbackTo.run()
        values.push(VERDICT.unavailable)
        reason = reasonOf(error)
      }
      this.#release.run()
    }
    this.#commit.run()
    return { kind: 'answered', values, proven: this.#wrote, ...(reason !== undefined && { reason }) }
  }

  /** Key, order and event, or the reply that already holds the key, or nothing; then the verdict. */
  #write(writes: Flat, at: number, values: Flat): void {
    const tenant = writes[at + WRITE.tenant]
    const operation = writes[at + WRITE.operation]
    const key = writes[at + WRITE.key]
    const fingerprint = writes[at + WRITE.fingerprint]
    const status = writes[at + WRITE.replyStatus]
    const version = writes[at + WRITE.version]
    const json = writes[at + WRITE.json]
    const atMs = writes[at + WRITE.atMs]
    const headers = packHeaders(writes[at + WRITE.location], version)
    const made = this.#insertKey.run(tenant, operation, key, fingerprint, status, headers, json, atMs)
    if (made.changes === 0) {
      const reply = this.#findReply(tenant, operation, key)
      if (reply === undefined) throw new TypeError('a key is taken and holds nothing')
      values.push(VERDICT.taken, ...reply)
      return
    }
    const orderId = writes[at + WRITE.orderId]
    const customerId = writes[at + WRITE.customerId]
    const orderStatus = writes[at + WRITE.orderStatus]
    if (version === 1) {
      this.#insertOrder.run(orderId, tenant, customerId, orderStatus, version, json, atMs, atMs)
    } else {
      const before = Number(version) - 1
      if (this.#updateOrder.run(orderStatus, version, json, atMs, tenant, orderId, before).changes === 0) {
        this.#deleteKey.run(made.lastInsertRowid)
        values.push(VERDICT.outdated)
        return
      }
    }
    const eventId = writes[at + WRITE.eventId]
    const type = writes[at + WRITE.eventType]
    const traceparent = writes[at + WRITE.traceparent]
    this.#insertEvent.run(eventId, type, orderId, tenant, traceparent, atMs, json)
    values.push(VERDICT.created)
    this.#wrote = true
  }

  /** Nothing to do when SQLite has rolled back by itself. */
  #undo(): void {
    if (this.#db.inTransaction) this.#rollback.run()
  }
}
