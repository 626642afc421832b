import type { Database, Statement } from 'better-sqlite3'
import { type Flat, VERDICT, WRITE } from './protocol.ts'
import * as sql from './statements.ts'
import { packHeaders, storedReplies } from './stored-replies.ts'

/** Writes orders: key, order and event, or nothing. */
export class OrderWrites {
  readonly #insertKey: Statement
  readonly #deleteKey: Statement
  readonly #insertOrder: Statement
  readonly #updateOrder: Statement
  readonly #newestEvent: Statement
  readonly #insertEvent: Statement
  readonly #findReply: ReturnType<typeof storedReplies>

  constructor(db: Database) {
    this.#insertKey = db.prepare(sql.INSERT_KEY)
    this.#deleteKey = db.prepare(sql.DELETE_KEY)
    this.#insertOrder = db.prepare(sql.INSERT_ORDER)
    this.#updateOrder = db.prepare(sql.UPDATE_ORDER)
    this.#newestEvent = db.prepare(sql.SELECT_NEWEST_EVENT).raw()
    this.#insertEvent = db.prepare(sql.INSERT_EVENT)
    this.#findReply = storedReplies(db)
  }

  /** Adds the verdict to `values`: with the reply that already holds the key when it is taken. Whether it has written. */
  write(batch: Flat, at: number, values: Flat): boolean {
    const tenant = batch[at + WRITE.tenant]
    const operation = batch[at + WRITE.operation]
    const key = batch[at + WRITE.key]
    const fingerprint = batch[at + WRITE.fingerprint]
    const status = batch[at + WRITE.replyStatus]
    const version = batch[at + WRITE.version]
    const json = batch[at + WRITE.json]
    const atMs = batch[at + WRITE.atMs]
    const headers = packHeaders(batch[at + WRITE.location], version)
    const made = this.#insertKey.run(tenant, operation, key, fingerprint, status, headers, json, atMs)
    if (made.changes === 0) {
      const reply = this.#findReply(tenant, operation, key)
      if (reply === undefined) throw new TypeError('a key is taken and holds nothing')
      values.push(VERDICT.taken, ...reply)
      return false
    }
    const orderId = batch[at + WRITE.orderId]
    const replaces = Number(version) - 1
    const before = replaces === 0 ? FIRST : this.#newestEvent.get(tenant, orderId, replaces)
    if (before === undefined) {
      // The order is not at the version that this one replaces. The key is the only row that stands by now.
      this.#deleteKey.run(made.lastInsertRowid)
      values.push(VERDICT.outdated)
      return false
    }
    const [after] = before as [number | null]
    const eventId = batch[at + WRITE.eventId]
    const type = batch[at + WRITE.eventType]
    const traceparent = batch[at + WRITE.traceparent]
    const event = this.#insertEvent.run(eventId, type, orderId, tenant, traceparent, atMs, json, after)
    const orderStatus = batch[at + WRITE.orderStatus]
    if (replaces === 0) {
      const customerId = batch[at + WRITE.customerId]
      const sequence = event.lastInsertRowid
      this.#insertOrder.run(orderId, tenant, customerId, orderStatus, version, json, atMs, atMs, sequence)
    } else {
      this.#updateOrder.run(orderStatus, version, json, atMs, event.lastInsertRowid, tenant, orderId)
    }
    values.push(VERDICT.created)
    return true
  }
}

/** No event of the order comes before its first. */
const FIRST: [null] = [null]
