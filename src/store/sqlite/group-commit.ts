import type { Database, Statement } from 'better-sqlite3'
import { faultOf, reasonOf } from './faults.ts'
import { SCHEMA_VERSION } from './migrations.ts'
import { type Answered, CLAIM, type Flat, ITEM_LENGTH, VERDICT } from './protocol.ts'
import * as sql from './statements.ts'
import { WriterItems } from './writer-items.ts'

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
  readonly #items: WriterItems
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
    this.#items = new WriterItems(db)
  }

  answer(batch: Flat): Answered {
    const places = placesOf(batch)
    const count = places.length
    try {
      this.#begin.run()
      this.#wrote = count === 0
      if (this.#wrote) this.#db.exec(sql.PROBE_WRITE(SCHEMA_VERSION))
      const claimed = this.#claim(count)
      return this.#together(batch, places, claimed) ?? this.#oneByOne(batch, places, claimed)
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
  #together(batch: Flat, places: readonly number[], claimed: readonly boolean[]): Answered | undefined {
    try {
      const values: Flat = []
      for (const [place, ours] of claimed.entries()) {
        if (ours) this.#perform(batch, places[place], values)
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

  #oneByOne(batch: Flat, places: readonly number[], claimed: readonly boolean[]): Answered {
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
        this.#perform(batch, places[place], values)
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

  #perform(batch: Flat, at: number | undefined, values: Flat): void {
    if (at === undefined) throw new RangeError('a batch has fewer items than places')
    if (this.#items.perform(batch, at, values)) this.#wrote = true
  }

  /** Nothing to do when SQLite has rolled back by itself. */
  #undo(): void {
    if (this.#db.inTransaction) this.#rollback.run()
  }
}

/** Where each item of a batch begins. */
function placesOf(batch: Flat): number[] {
  const places: number[] = []
  for (let at = 0; at < batch.length; ) {
    places.push(at)
    const length = ITEM_LENGTH[Number(batch[at])]
    if (length === undefined) throw new TypeError('an item for the writer is of no kind')
    at += 1 + length
  }
  return places
}
