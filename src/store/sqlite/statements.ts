/**
 * The SQL of the order path: three inserts to make an order, two and an update to replace its version. Prepared once
 * for each connection.
 *
 * Bound parameters stand in the order of the columns. The order's JSON is stored three times on purpose: the order
 * changes later, while the reply must be given again as it was and the event says what happened then.
 */

// IMMEDIATE: a deferred transaction that reads first and writes later fails at once with SQLITE_BUSY_SNAPSHOT when
// another process wrote in between, whatever the busy timeout is.
export const BEGIN = 'BEGIN IMMEDIATE'
export const COMMIT = 'COMMIT'
export const ROLLBACK = 'ROLLBACK'

// Only for the second try of a group with a bad row in it.
export const SAVEPOINT = 'SAVEPOINT one_write'
export const RELEASE = 'RELEASE one_write'
export const ROLLBACK_TO = 'ROLLBACK TO one_write'

// First of a write, and the only judge of what is new. The conflict target names the key's index, so any other
// violation is an error and never taken for a duplicate.
export const INSERT_KEY = `
  INSERT INTO idempotency (tenant, operation, key, fingerprint, status, headers, body, created_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (tenant, operation, key) DO NOTHING`

export const INSERT_ORDER = `
  INSERT INTO orders (id, tenant, customer_id, status, version, body, created_at, updated_at, event)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`

// Finds no row when the order is not at the version that is to be replaced.
export const SELECT_NEWEST_EVENT = 'SELECT event FROM orders WHERE tenant = ? AND id = ? AND version = ?'

export const UPDATE_ORDER = `
  UPDATE orders SET status = ?, version = ?, body = ?, updated_at = ?, event = ? WHERE tenant = ? AND id = ?`

// The key of an outdated write, by the row that has just been made for it.
export const DELETE_KEY = 'DELETE FROM idempotency WHERE rowid = ?'

export const INSERT_EVENT = `
  INSERT INTO outbox (event_id, type, subject, tenant, traceparent, time, data, after)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

export const SELECT_REPLY = `
  SELECT fingerprint, status, headers, body FROM idempotency WHERE tenant = ? AND operation = ? AND key = ?`

export const SELECT_ORDER = 'SELECT version, body FROM orders WHERE tenant = ? AND id = ?'

export const SELECT_ORDERS = `
  SELECT id, version, body FROM orders
  WHERE tenant = ? AND customer_id = ? AND id < ? ORDER BY id DESC LIMIT ?`

// Whether the store takes writes again: puts one page through the log and changes nothing. An empty transaction
// writes nothing and would call a full disk well.
export const PROBE_WRITE = (schemaVersion: number) => `PRAGMA user_version = ${schemaVersion}`

export const PROBE_READ = 'SELECT 1 FROM orders LIMIT 1'

// A claim's events: those of its range that are not held, and those that it has taken again.
export const SELECT_EVENTS = `
  SELECT sequence, event_id, type, subject, tenant, traceparent, time, data, 0
  FROM outbox
  WHERE sequence BETWEEN ? AND ?
    AND NOT EXISTS (SELECT 1 FROM outbox_held WHERE outbox_held.sequence = outbox.sequence)
  UNION ALL
  SELECT sequence, event_id, type, subject, tenant, traceparent, time, data, attempts
  FROM outbox_held JOIN outbox USING (sequence)
  WHERE token = ?
  ORDER BY sequence`

export const SELECT_DEAD = `
  SELECT sequence, event_id, type, subject, tenant, time, attempts, reason
  FROM outbox_held JOIN outbox USING (sequence)
  WHERE token IS NULL AND due_at IS NULL AND sequence > ? ORDER BY sequence LIMIT ?`

// Sequences have no gaps in what is claimed or not yet: only what is delivered is ever deleted.
export const SELECT_BACKLOG = `
  WITH pending AS (
    SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox'), 0) - reached
      + coalesce((SELECT sum(last - first + 1) FROM outbox_claims), 0)
      - (SELECT count(*) FROM outbox_held JOIN outbox_claims ON sequence BETWEEN first AND last)
      + (SELECT count(*) FROM outbox_held WHERE token > 0 OR (token IS NULL AND due_at IS NOT NULL)) AS events,
      min(
        reached + 1,
        coalesce(
          (SELECT min(
            (SELECT sequence FROM outbox WHERE sequence BETWEEN first AND last
              AND NOT EXISTS (SELECT 1 FROM outbox_held WHERE outbox_held.sequence = outbox.sequence)
              ORDER BY sequence LIMIT 1)
          ) FROM outbox_claims),
          reached + 1
        ),
        coalesce(
          (SELECT min(sequence) FROM outbox_held WHERE token > 0 OR (token IS NULL AND due_at IS NOT NULL)),
          reached + 1
        )
      ) AS oldest
    FROM outbox_reach
  )
  SELECT events,
    (SELECT count(*) FROM outbox_held WHERE token IS NULL AND due_at IS NULL),
    CASE WHEN events > 0 THEN coalesce((SELECT time FROM outbox WHERE sequence = oldest), -1) ELSE -1 END
  FROM pending`
