import { newId } from '../../src/domain/index.ts'
import { drawRandom } from '../../src/runtime/index.ts'
import type { OrderWrite } from '../../src/store/index.ts'

/** An order of the usual size, under a key of its own. */
export function someOrder(): OrderWrite {
  const atMs = Date.now()
  const id = newId(atMs, drawRandom(16))
  const json = JSON.stringify({
    id,
    status: 'accepted',
    version: 1,
    customerId: 'c',
    filler: 'x'.repeat(250),
  })
  return {
    tenant: 'bench',
    operation: 'orders.create',
    key: id,
    fingerprint: 'f'.repeat(64),
    order: { id, customerId: 'c', status: 'accepted', version: 1, json },
    event: { id: newId(atMs, drawRandom(16)), type: 'order.created', traceparent: TRACEPARENT },
    reply: { status: 201, location: `/v1/orders/${id}` },
    atMs,
  }
}

const TRACEPARENT = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01'
