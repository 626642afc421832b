import { randomBytes } from 'node:crypto'
import { newId } from '../../src/domain/index.ts'
import type { OrderWrite } from '../../src/store/index.ts'

export interface WriteChoices {
  readonly tenant?: string
  readonly customerId?: string
  readonly key?: string
  readonly fingerprint?: string
  readonly id?: string
  readonly json?: string
  readonly atMs?: number
}

/** An identifier that nothing has. */
export function someId(): string {
  return newId(Date.now(), randomBytes(16))
}

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`

/** A whole write that makes an order; whatever is not chosen is new and valid. */
export function orderWrite({
  tenant = 'tenant-1',
  customerId = 'customer-1',
  id = someId(),
  key = `key-${id}`,
  fingerprint = 'f'.repeat(64),
  json = JSON.stringify({ id, status: 'accepted', version: 1, customerId }),
  atMs = Date.UTC(2026, 0, 1),
}: WriteChoices = {}): OrderWrite {
  return {
    tenant,
    operation: 'orders.create',
    key,
    fingerprint,
    order: { id, customerId, status: 'accepted', version: 1, json },
    event: { id: someId(), type: 'order.created', traceparent: TRACEPARENT },
    reply: { status: 201, location: `/v1/orders/${id}` },
    atMs,
  }
}

/** The write that cancels what `write` has made, a minute later. */
export function cancelWrite(
  { tenant, order, reply, atMs }: OrderWrite,
  {
    version = order.version + 1,
    key = `cancel-${order.id}`,
    fingerprint = 'c'.repeat(64),
  }: { version?: number; key?: string; fingerprint?: string } = {},
): OrderWrite {
  const { id, customerId } = order
  const json = JSON.stringify({ id, status: 'cancelled', version, customerId, under: key })
  return {
    tenant,
    operation: 'orders.cancel',
    key,
    fingerprint,
    order: { id, customerId, status: 'cancelled', version, json },
    event: { id: someId(), type: 'order.cancelled', traceparent: TRACEPARENT },
    reply: { status: 200, location: reply.location },
    atMs: atMs + 60_000,
  }
}

/** A signal that never aborts. */
export function never(): AbortSignal {
  return new AbortController().signal
}
