import type { Database, Statement } from 'better-sqlite3'
import { LONGEST_WAIT_MS, SET_BACK_MS } from '../outbox-port.ts'

/**
 * Outbox claims: which events are whose, in the writer's transactions. Events are claimed in ranges of their sequence,
 * which in SQLite is the order of commits, so an event that is delivered at its first try costs no write of its own:
 * a claim of 200 events is one row, and its end deletes it. Only what could not be delivered gets a row, in
 * `outbox_held`:
 *
 *   sequence > reached                        never claimed
 *   in the range of a claim, not held         claimed
 *   held, with the token of a claim           claimed again
 *   held, with due_at                         waiting until then
 *   held, without                             dead
 *   held, with the token 0                    delivered, out of a range that another claim still has
 *   all else                                  delivered
 *
 * The ranges of claims never overlap, since each begins where events have never been claimed. A lease that is over is
 * rare enough to give each of its events a row, so that any claim may take any part of them.
 */
export class OutboxClaims {
  readonly #sql: Record<keyof typeof SQL, Statement>

  constructor(db: Database) {
    this.#sql = Object.fromEntries(
      Object.entries(SQL).map(([name, text]) => [
        name,
        READS.has(name) ? db.prepare(text).raw() : db.prepare(text),
      ]),
    ) as Record<keyof typeof SQL, Statement>
  }

  /** The token and range of a new claim; undefined when nothing due was found. What it holds again has the token. */
  claim(limit: number, leaseMs: number, atMs: number): Claimed | undefined {
    const latestMs = atMs + LONGEST_WAIT_MS + SET_BACK_MS
    for (const [lapsed] of this.#sql.lapsedClaims.all(atMs, latestMs) as [number][]) this.handBack(lapsed)
    this.#sql.bringForward.run(latestMs)
    for (let looked = 0; looked < MOST_LOOKED_AT; looked += limit) {
      const claimed = this.#look(limit, leaseMs, atMs)
      // A claim of nothing would have nobody to settle it.
      if (claimed === undefined || this.#sql.holds.get(...claimed) !== undefined) return claimed
      this.#end(...claimed)
    }
    return undefined
  }

  /** False when the claim is not there any more. It goes on with what it keeps, without a range. */
  settle(token: number, exceptions: readonly Exception[], keeps: readonly number[]): boolean {
    const range = this.#sql.rangeOf.get(token) as [number, number] | undefined
    if (range === undefined) return false
    const [first, last] = range
    for (const { sequence, attempts, dueAtMs, reason } of exceptions) {
      const again = this.#sql.holdAgain.run(attempts, dueAtMs, reason, sequence, token).changes > 0
      // Held already and not by this claim: not its event.
      if (!again && sequence >= first && sequence <= last) {
        this.#sql.holdFirst.run(sequence, attempts, dueAtMs, reason)
      }
    }
    for (const sequence of keeps) {
      if (sequence >= first && sequence <= last) this.#sql.keep.run(sequence, token)
    }
    // What it had taken again, and neither names nor keeps, is delivered.
    const kept = JSON.stringify(keeps)
    this.#sql.deliverInRange.run(token, kept)
    this.#sql.deliver.run(token, kept)
    if (keeps.length === 0) this.#end(token, first, last)
    else {
      this.#sql.forget.run(first, last)
      this.#sql.endRange.run(token)
    }
    return true
  }

  /** What the claim holds is as it was before. False when the claim is not there any more. */
  handBack(token: number): boolean {
    const range = this.#sql.rangeOf.get(token) as [number, number] | undefined
    if (range === undefined) return false
    this.#sql.handBackRange.run(...range)
    this.#sql.handBackAgain.run(token)
    this.#end(token, ...range)
    return true
  }

  /** Of these sequences, as JSON, and of those before them in their orders, the dead ones. How many. */
  redrive(sequences: string, atMs: number): number {
    return this.#sql.redrive.run(sequences, atMs).changes
  }

  /** A claim of what is due, unless something earlier is in its way. */
  #look(limit: number, leaseMs: number, atMs: number): Claimed | undefined {
    const [reached, newest] = this.#sql.reach.get() as [number, number]
    const fresh = newest - reached
    // Half of a claim at most for what was claimed before, while there is anything that was not.
    const most = Math.max(limit - fresh, Math.floor(limit / 2), 1)
    const again = this.#sql.due.all(atMs, most) as [number][]
    const first = reached + 1
    const last = reached + Math.min(fresh, limit - again.length)
    if (again.length === 0 && last < first) return undefined
    const token = Number(this.#sql.newClaim.run(first, last, atMs + leaseMs).lastInsertRowid)
    if (last >= first) this.#sql.setReached.run(last)
    for (const [sequence] of again) this.#sql.take.run(token, sequence)
    this.#holdBack(token, first, last, atMs)
    return [token, first, last]
  }

  #end(token: number, first: number, last: number): void {
    this.#sql.forget.run(first, last)
    this.#sql.endClaim.run(token)
  }

  /**
   * Takes events out of the claim that come after one of their order which is neither delivered nor in this claim:
   * behind a waiting one they wait, behind a dead one they are dead.
   */
  #holdBack(token: number, first: number, last: number, atMs: number): void {
    const followers = this.#sql.followers.all(first, last, token) as [number, number, number][]
    for (const [sequence, after, attempts] of followers) {
      const held = this.#sql.heldState.get(after) as [number | null, number | null] | undefined
      const isOver = held === undefined ? !this.#sql.claimedElsewhere.get(after, after, token) : held[1] === 0
      if (isOver || held?.[1] === token) continue
      const isDead = held !== undefined && held[0] === null && held[1] === null
      const dueAtMs = isDead ? null : Math.max(held?.[0] ?? 0, atMs + BEHIND_MS)
      const reason = isDead
        ? 'an earlier event of its order is parked'
        : 'an earlier event of its order is due first'
      this.#sql.hold.run(sequence, attempts, dueAtMs, reason)
    }
  }
}

type Claimed = [token: number, first: number, last: number]

export interface Exception {
  readonly sequence: number
  readonly attempts: number
  readonly dueAtMs: number | null
  readonly reason: string
}

// How soon an event is looked at again whose predecessor is just being delivered.
const BEHIND_MS = 100

// Where all that is due must wait, a claim looks further, at so many events in all: 8 ms of the writer.
const MOST_LOOKED_AT = 1_600

const SQL = {
  lapsedClaims: 'SELECT token FROM outbox_claims WHERE ends_at <= ? OR ends_at > ? ORDER BY token',
  bringForward: `
    UPDATE outbox_held SET due_at = 0 WHERE sequence IN (
      SELECT sequence FROM outbox_held WHERE token IS NULL AND due_at > ? LIMIT 1000
    )`,
  rangeOf: 'SELECT first, last FROM outbox_claims WHERE token = ?',
  holds: `
    SELECT 1 WHERE EXISTS (SELECT 1 FROM outbox_held WHERE token = ?) OR EXISTS (
      SELECT 1 FROM outbox WHERE sequence BETWEEN ? AND ?
      AND NOT EXISTS (SELECT 1 FROM outbox_held WHERE outbox_held.sequence = outbox.sequence)
    )`,
  claimedElsewhere: 'SELECT 1 FROM outbox_claims WHERE first <= ? AND last >= ? AND token <> ?',
  newClaim: 'INSERT INTO outbox_claims (first, last, ends_at) VALUES (?, ?, ?)',
  endClaim: 'DELETE FROM outbox_claims WHERE token = ?',
  // sqlite_sequence holds the newest sequence even when every event has been purged.
  reach: `
    SELECT reached, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0) FROM outbox_reach`,
  setReached: 'UPDATE outbox_reach SET reached = ?',
  due: `
    SELECT sequence FROM outbox_held
    WHERE token IS NULL AND due_at <= ? ORDER BY due_at LIMIT ?`,
  take: 'UPDATE outbox_held SET token = ? WHERE sequence = ?',
  hold: `
    INSERT INTO outbox_held (sequence, attempts, due_at, reason) VALUES (?, ?, ?, ?)
    ON CONFLICT (sequence) DO UPDATE
    SET attempts = excluded.attempts, due_at = excluded.due_at, reason = excluded.reason, token = NULL`,
  holdFirst: `
    INSERT INTO outbox_held (sequence, attempts, due_at, reason) VALUES (?, ?, ?, ?)
    ON CONFLICT (sequence) DO NOTHING`,
  holdAgain: `
    UPDATE outbox_held SET attempts = ?, due_at = ?, reason = ?, token = NULL WHERE sequence = ? AND token = ?`,
  keep: `
    INSERT INTO outbox_held (sequence, attempts, due_at, token, reason) VALUES (?, 0, 0, ?, 'being delivered')
    ON CONFLICT (sequence) DO NOTHING`,
  endRange: 'UPDATE outbox_claims SET last = first - 1 WHERE token = ?',
  // Without its row it would be taken for one that the claim with that range has not delivered yet.
  deliverInRange: `
    UPDATE outbox_held SET token = 0 WHERE token = ? AND sequence NOT IN (SELECT value FROM json_each(?))
    AND EXISTS (SELECT 1 FROM outbox_claims WHERE outbox_held.sequence BETWEEN first AND last)`,
  deliver: 'DELETE FROM outbox_held WHERE token = ? AND sequence NOT IN (SELECT value FROM json_each(?))',
  forget: 'DELETE FROM outbox_held WHERE token = 0 AND sequence BETWEEN ? AND ?',
  // Due before all that failed: nobody has found any fault with them.
  handBackRange: `
    INSERT INTO outbox_held (sequence, attempts, due_at, reason)
    SELECT sequence, 0, 0, 'its lease ran out' FROM outbox WHERE sequence BETWEEN ? AND ?
    ON CONFLICT (sequence) DO NOTHING`,
  handBackAgain: 'UPDATE outbox_held SET token = NULL WHERE token = ?',
  heldState: 'SELECT due_at, token FROM outbox_held WHERE sequence = ?',
  followers: `
    SELECT sequence, after, 0 FROM outbox WHERE sequence BETWEEN ? AND ? AND after IS NOT NULL
    UNION ALL
    SELECT sequence, after, attempts FROM outbox_held JOIN outbox USING (sequence)
    WHERE token = ? AND after IS NOT NULL
    ORDER BY 1`,
  redrive: `
    WITH RECURSIVE chosen (sequence) AS (
      SELECT value FROM json_each(?)
      UNION
      SELECT outbox.after FROM chosen
      JOIN outbox USING (sequence)
      JOIN outbox_held AS before ON before.sequence = outbox.after
    )
    UPDATE outbox_held SET due_at = ?, attempts = 0, reason = 'redriven'
    WHERE sequence IN (SELECT sequence FROM chosen) AND token IS NULL AND due_at IS NULL`,
} as const

const READS: ReadonlySet<string> = new Set([
  'lapsedClaims',
  'rangeOf',
  'holds',
  'claimedElsewhere',
  'reach',
  'due',
  'heldState',
  'followers',
])
