import type { Database } from 'better-sqlite3'
import type { OrderWrite } from '../../src/store/index.ts'

/** What schema version 1 was, written down apart from the migrations, which must go on making the same of it. */
const TABLES = `
  CREATE TABLE idempotency (
    tenant TEXT NOT NULL, operation TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL,
    status INTEGER NOT NULL, headers TEXT NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX idempotency_key ON idempotency (tenant, operation, key);
  CREATE TABLE orders (
    id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, customer_id TEXT NOT NULL, status TEXT NOT NULL,
    version INTEGER NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE outbox (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL, type TEXT NOT NULL, subject TEXT NOT NULL,
    tenant TEXT NOT NULL, traceparent TEXT NOT NULL, time INTEGER NOT NULL, data TEXT NOT NULL
  ) STRICT;
  PRAGMA application_id = ${0x50_75_6e_63};
  PRAGMA user_version = 1`

/** Makes of an empty database what release 0.1.0 left behind with these writes in it. */
export function makeSchema1(db: Database, writes: readonly OrderWrite[]): void {
  db.exec(TABLES)
  const key = db.prepare('INSERT INTO idempotency VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  const row = db.prepare('INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  const replace = db.prepare(
    'UPDATE orders SET status = ?, version = ?, body = ?, updated_at = ? WHERE id = ?',
  )
  const outbox = db.prepare('INSERT INTO outbox VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)')
  for (const { tenant, operation, order, event, reply, atMs, ...write } of writes) {
    const headers = JSON.stringify({ location: reply.location, version: order.version })
    key.run(tenant, operation, write.key, write.fingerprint, reply.status, headers, order.json, atMs)
    if (order.version > 1) replace.run(order.status, order.version, order.json, atMs, order.id)
    else row.run(order.id, tenant, order.customerId, order.status, order.version, order.json, atMs, atMs)
    outbox.run(event.id, event.type, order.id, tenant, event.traceparent, atMs, order.json)
  }
}

/** The same at schema version 2, which had the lists' index. */
export function makeSchema2(db: Database, writes: readonly OrderWrite[]): void {
  makeSchema1(db, writes)
  db.exec('CREATE INDEX orders_of_customer ON orders (tenant, customer_id, id); PRAGMA user_version = 2')
}
