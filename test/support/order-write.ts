import { randomBytes } from 'node:crypto'
import { newId } from '../../src/domain/index.ts'
import type { OrderWrite } from '../../src/store/index.ts'

export interface WriteChoices {
  readonly tenant?: string
  readonly key?: string
  readonly fingerprint?: string
  readonly id?: string
  readonly json?: string
  readonly version?: number
}

/** An identifier that nothing has. */
export function someId(): string {
  return newId(Date.now(), randomBytes(16))
}

/** A whole write; whatever is not chosen is new and valid. */
export function orderWrite({
  tenant = 'tenant-1',
  id = someId(),
  key = `key-${id}`,
  fingerprint = 'f'.repeat(64),
  json = JSON.stringify({ id, status: 'accepted', version: 1, customerId: 'customer-1' }),
  version = 1,
}: WriteChoices = {}): OrderWrite {
  return {
    tenant,
    operation: 'orders.create',
    key,
    fingerprint,
    order: { id, customerId: 'customer-1', status: 'accepted', version, json },
    event: { id: someId(), type: 'order.created', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` },
    reply: { status: 201, location: `/v1/orders/${id}` },
    atMs: Date.UTC(2026, 0, 1),
  }
}

/** A signal that never aborts. */
export function never(): AbortSignal {
  return new AbortController().signal
}
