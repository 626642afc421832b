import type { Database, Statement } from 'better-sqlite3'
import { faultOf, reasonOf } from './faults.ts'
import { SCHEMA_VERSION } from './migrations.ts'
import { type Answered, CLAIM, type Flat, VERDICT, WRITE, WRITE_LENGTH } from './protocol.ts'
import * as sql from './statements.ts'
import { packHeaders, storedReplies } from './stored-replies.ts'

/**
 * Group commit: a batch of writes in one transaction and behind one fsync, yet each with a verdict of its own.
 *
 *   begin ──lock held──▶ claim ──▶ insert all ──▶ commit ──▶ verdicts
 *     │                               │ a row throws
 *     │                               ▼
 *     │                            roll back ──▶ begin ──▶ insert each under a savepoint ──▶ commit ──▶ verdicts
 *     ▼                                                          the bad row alone: unavailable
 *   every write: unavailable          ◀── any fault of the store, wherever it strikes
 *
 * The first pass has no savepoints: they cost 10 % of a group, and a bad row is a rarity. Claims come after the
 * lock, so that whatever waits for a lock held elsewhere can still be withdrawn.
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
  readonly #insertOrder: Statement
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
    this.#insertOrder = db.prepare(sql.INSERT_ORDER)
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
        if (ours) this.#insert(writes, place * WRITE_LENGTH, values)
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
        this.#insert(writes, place * WRITE_LENGTH, values)
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

  /** Three inserts, or the reply that already holds the key; then the verdict. */
  #insert(writes: Flat, at: number, values: Flat): void {
    const tenant = writes[at + WRITE.tenant]
    const operation = writes[at + WRITE.operation]
    const key = writes[at + WRITE.key]
    const fingerprint = writes[at + WRITE.fingerprint]
    const status = writes[at + WRITE.replyStatus]
    const version = writes[at + WRITE.version]
    const json = writes[at + WRITE.json]
    const atMs = writes[at + WRITE.atMs]
    const headers = packHeaders(writes[at + WRITE.location], version)
    if (this.#insertKey.run(tenant, operation, key, fingerprint, status, headers, json, atMs).changes === 0) {
      const reply = this.#findReply(tenant, operation, key)
      if (reply === undefined) throw new TypeError('a key is taken and holds nothing')
      values.push(VERDICT.taken, ...reply)
      return
    }
    const orderId = writes[at + WRITE.orderId]
    const customerId = writes[at + WRITE.customerId]
    const orderStatus = writes[at + WRITE.orderStatus]
    this.#insertOrder.run(orderId, tenant, customerId, orderStatus, version, json, atMs, atMs)
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
