import type { Database, Statement } from 'better-sqlite3'
import type { Flat } from './protocol.ts'

/** Deletes what is old, a step at a time, in the writer's transactions. */
export class PurgeSteps {
  readonly #seen: Record<Purgeable, Statement>
  readonly #delete: Record<Purgeable, Statement>

  constructor(db: Database) {
    this.#seen = { events: db.prepare(SEEN.events).raw(), keys: db.prepare(SEEN.keys).raw() }
    this.#delete = { events: db.prepare(DELETE.events), keys: db.prepare(DELETE.keys) }
  }

  /** How many were deleted, and where to go on if there is more. */
  take(what: Purgeable, atMs: number, madeBeforeMs: number, limit: number, after: number): Flat {
    const seen = this.#seen[what].get(after, limit) as [count: number, last: number, madeAtMs: number]
    const [count, last, madeAtMs] = seen
    if (count === 0) return [0]
    const { changes } = this.#delete[what].run(after, last, madeBeforeMs)
    // One that was made in the future tells nothing of those behind it: the clock has been set back since.
    const isYoung = madeAtMs >= madeBeforeMs && madeAtMs <= atMs
    return count < limit || isYoung ? [changes] : [changes, last]
  }
}

export type Purgeable = 'events' | 'keys'

// The bare column beside max() is of the row that has the maximum (sqlite.org/lang_select.html, section 2.5).
const SEEN: Record<Purgeable, string> = {
  events: `
    SELECT count(*), max(sequence), time FROM (
      SELECT sequence, time FROM outbox
      WHERE sequence > ? AND sequence <= (SELECT reached FROM outbox_reach)
      ORDER BY sequence LIMIT ?
    )`,
  // Rows are appended, so the first ones are the oldest; no index by time has to be kept for each order.
  keys: `
    SELECT count(*), max(id), created_at FROM (
      SELECT rowid AS id, created_at FROM idempotency WHERE rowid > ? ORDER BY rowid LIMIT ?
    )`,
}

const DELETE: Record<Purgeable, string> = {
  events: `
    DELETE FROM outbox WHERE sequence > ? AND sequence <= ? AND time < ?
    AND NOT EXISTS (
      SELECT 1 FROM outbox_held WHERE outbox_held.sequence = outbox.sequence AND token IS NOT 0
    )
    AND (
      NOT EXISTS (SELECT 1 FROM outbox_claims WHERE outbox.sequence BETWEEN first AND last)
      OR EXISTS (SELECT 1 FROM outbox_held WHERE outbox_held.sequence = outbox.sequence)
    )`,
  keys: 'DELETE FROM idempotency WHERE rowid > ? AND rowid <= ? AND created_at < ?',
}
