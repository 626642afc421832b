import { createHash, randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import Database from 'better-sqlite3'
import express from 'express'

/**
 * The usual way to write this API, as a peer to measure against: Express, better-sqlite3 on the event loop, one
 * durable commit per request, the same three inserts. It has no limit, no deadline and prices from memory.
 */
const database = new Database(process.env.STORE_PATH ?? ':memory:')
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')
database.exec(`
  CREATE TABLE idempotency (tenant TEXT, operation TEXT, key TEXT, fingerprint TEXT, status INTEGER, body TEXT,
    UNIQUE (tenant, operation, key));
  CREATE TABLE orders (id TEXT PRIMARY KEY, tenant TEXT, customer_id TEXT, body TEXT);
  CREATE TABLE outbox (sequence INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT, type TEXT, data TEXT);
`)
const find = database.prepare(
  'SELECT fingerprint, body FROM idempotency WHERE tenant = ? AND operation = ? AND key = ?',
)
const insertKey = database.prepare('INSERT INTO idempotency VALUES (?, ?, ?, ?, ?, ?)')
const insertOrder = database.prepare('INSERT INTO orders VALUES (?, ?, ?, ?)')
const insertEvent = database.prepare('INSERT INTO outbox (id, type, data) VALUES (?, ?, ?)')

const PRICE = 1966

interface Body {
  customerId: string
  items: { sku: string; quantity: number }[]
}

const app = express()
app.use(express.json())
app.post('/v1/orders', (req, res) => {
  const key = req.get('idempotency-key')
  if (req.get('authorization') !== 'Bearer demo' || !key) return void res.sendStatus(400)
  const fingerprint = createHash('sha256').update(JSON.stringify(req.body)).digest('hex')
  const known = find.get('demo', 'create', key) as { fingerprint: string; body: string } | undefined
  if (known)
    return void res
      .status(known.fingerprint === fingerprint ? 201 : 409)
      .type('json')
      .send(known.body)
  const { customerId, items } = req.body as Body
  const id = randomUUID()
  const lines = items.map(item => ({ ...item, unitPrice: PRICE, lineTotal: PRICE * item.quantity }))
  const total = lines.reduce((sum, line) => sum + line.lineTotal, 0)
  const now = new Date().toISOString()
  const order = {
    id,
    status: 'accepted',
    version: 1,
    customerId,
    currency: 'USD',
    items: lines,
    total,
    createdAt: now,
  }
  const body = JSON.stringify(order)
  database.transaction(() => {
    insertKey.run('demo', 'create', key, fingerprint, 201, body)
    insertOrder.run(id, 'demo', customerId, body)
    insertEvent.run(randomUUID(), 'order.created', body)
  })()
  res.status(201).location(`/v1/orders/${id}`).type('json').send(body)
})

const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ msg: 'ready', port: (server.address() as AddressInfo).port })}\n`)
})
process.on('SIGTERM', () => process.exit(0))
