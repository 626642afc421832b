import { requestBytes } from './connection.ts'
import { KEYS } from './keys.ts'

let serial = 0

/** A key that no other check uses. */
export function freshKey(): string {
  return `key-${process.pid}-${++serial}`
}

/** A SKU that has not been priced before, so that asking for it always reaches the pricing service. */
export function freshSku(): string {
  return `SKU-${process.pid}-${++serial}`
}

/** A customer that has no orders yet. */
export function freshCustomer(): string {
  return `customer-${process.pid}-${++serial}`
}

export interface SampleOrder {
  customerId: string
  currency: string
  items: { sku: string; quantity: number }[]
  reference?: string
}

/** A valid order of its own, with `changes` laid over it. */
export function sampleOrder(changes: Partial<SampleOrder> = {}): SampleOrder {
  return { customerId: 'customer-7', currency: 'EUR', items: [{ sku: freshSku(), quantity: 2 }], ...changes }
}

/** A valid order's JSON with one piece of its text replaced; for bodies that no serialiser would write. */
export function sampleText(piece: string, replacement: string): string {
  const text =
    '{"customerId":"customer-7","currency":"EUR","items":[{"sku":"SKU-text","quantity":2}],"reference":"ref-9"}'
  if (!text.includes(piece)) throw new Error(`the sample has no ${piece}`)
  return text.replace(piece, replacement)
}

/** The bytes of a POST of an order by the key that may do everything, with `extra` headers. */
export function orderBytes(key: string, body: string, extra: Readonly<Record<string, string>> = {}): Buffer {
  const headers = {
    authorization: `Bearer ${KEYS.full}`,
    'content-type': 'application/json',
    'idempotency-key': key,
    ...extra,
  }
  return requestBytes('POST', '/v1/orders', headers, body)
}
