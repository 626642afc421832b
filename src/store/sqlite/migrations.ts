import type { Database } from 'better-sqlite3'
import { BEGIN, COMMIT, ROLLBACK } from './statements.ts'

/**
 * Migrations: numbered by their place, forward only, never edited once released. Each runs in one transaction with
 * the step of `user_version`, so a database stands at one version or the next and never between.
 */
const MIGRATIONS: readonly string[] = [
  // Rowid tables with a unique index, not WITHOUT ROWID: bodies are then appended, and random keys scatter only
  // over the small pages of the index. Measured at 300,000 orders, 32 in a group: 15,600 orders/s against 9,800.
  // For the orders, whose ids ascend, both forms give the same figure.
  `
  CREATE TABLE idempotency (
    tenant      TEXT    NOT NULL,
    operation   TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    status      INTEGER NOT NULL,
    headers     TEXT    NOT NULL, -- JSON: location, and the version that the ETag names
    body        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL  -- ms since the epoch, as all times here
  ) STRICT;
  CREATE UNIQUE INDEX idempotency_key ON idempotency (tenant, operation, key);

  CREATE TABLE orders (
    id          TEXT    NOT NULL PRIMARY KEY, -- UUID version 7
    tenant      TEXT    NOT NULL,
    customer_id TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
  ) STRICT;

  -- AUTOINCREMENT: a sequence is never given twice, not even after the newest events have been purged.
  CREATE TABLE outbox (
    sequence    INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id    TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    subject     TEXT    NOT NULL, -- order id
    tenant      TEXT    NOT NULL,
    traceparent TEXT    NOT NULL,
    time        INTEGER NOT NULL,
    data        TEXT    NOT NULL
  ) STRICT;
  `,
  // The lists of a customer. Like the keys, it takes each order to a page of its own. Measured at 300,000 orders, 32
  // in a group, orders/s and the time of a list of 100:
  //
  //                            1,000 customers    100,000 customers
  //   no index                          19,900               17,600
  //   this one                          12,500   0.27 ms     11,000
  //   version and body as well           8,400   0.09 ms      8,100
  //
  // A list is read far less often than it would be paid for, so it fetches its bodies from the orders. Replacing a
  // version touches no column of the index. Made once, for 300,000 orders, in 0.5 s.
  'CREATE INDEX orders_of_customer ON orders (tenant, customer_id, id)',
  // Delivery. What claims cost each order was the measure: see outbox-claims.ts.
  `
  -- The sequence of the event of the same order before this one.
  ALTER TABLE outbox ADD COLUMN after INTEGER;
  -- The sequence of the newest event of the order.
  ALTER TABLE orders ADD COLUMN event INTEGER;
  CREATE INDEX outbox_subject ON outbox (subject);
  UPDATE outbox SET after = (
    SELECT max(sequence) FROM outbox AS earlier
    WHERE earlier.subject = outbox.subject AND earlier.sequence < outbox.sequence
  ) WHERE type <> 'order.created';
  UPDATE orders SET event = (SELECT max(sequence) FROM outbox WHERE subject = orders.id);
  DROP INDEX outbox_subject;

  CREATE TABLE outbox_reach (
    reached INTEGER NOT NULL -- every event up to this sequence has been claimed before
  ) STRICT;
  INSERT INTO outbox_reach VALUES (0);

  -- AUTOINCREMENT: a token is never given twice, so a stale one never fits a later claim.
  CREATE TABLE outbox_claims (
    token   INTEGER PRIMARY KEY AUTOINCREMENT,
    first   INTEGER NOT NULL, -- of the range of sequences
    last    INTEGER NOT NULL, -- below first when the range is empty
    ends_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE outbox_held (
    sequence INTEGER PRIMARY KEY,
    attempts INTEGER NOT NULL,
    due_at   INTEGER,         -- NULL: dead
    token    INTEGER,         -- of the claim that has taken it again; 0: delivered
    reason   TEXT    NOT NULL
  ) STRICT;
  CREATE INDEX outbox_held_due ON outbox_held (due_at) WHERE token IS NULL;
  CREATE INDEX outbox_held_token ON outbox_held (token) WHERE token IS NOT NULL;
  `,
]

export const SCHEMA_VERSION = MIGRATIONS.length

/** Written into the file's header, so that a database of another program is never taken for ours. */
const APPLICATION_ID = 0x50_75_6e_63

/** Why a database cannot be used, in words for the operator. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError'
}

/**
 * Brings the database to `SCHEMA_VERSION`. Two processes may do so at once: each step looks at the version again
 * under the write lock. A database that is up to date is only read, so a lock held elsewhere does not matter.
 *
 * Throws `MigrationError` for a newer version or a database that is not ours.
 */
export function migrate(db: Database, migrations = MIGRATIONS): void {
  while (versionOf(db, migrations.length) < migrations.length) {
    db.exec(BEGIN)
    try {
      const version = versionOf(db, migrations.length)
      const migration = migrations[version]
      if (migration !== undefined) {
        db.exec(migration)
        db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${version + 1}`)
      }
      db.exec(COMMIT)
    } catch (error) {
      if (db.inTransaction) db.exec(ROLLBACK)
      throw error
    }
  }
}

function versionOf(db: Database, newest: number): number {
  const tables = db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get()
  if (tables !== 0 && db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new MigrationError('it is a database of another program')
  }
  const version = Number(db.pragma('user_version', { simple: true }))
  if (version > newest) {
    throw new MigrationError(
      `it has schema version ${version}, newer than the ${newest} that this release knows`,
    )
  }
  return version
}
