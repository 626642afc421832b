import type { Backlog, DeadEvent, OutboxEvent } from '../outbox-port.ts'
import type { KeyScope, ListedOrder, OrdersPage, OrderWrite, StoredOrder, StoredReply } from '../port.ts'
import type { Fault } from './faults.ts'

/**
 * What crosses between the event loop and a thread: flat arrays of text and numbers, a whole batch in one message.
 * Flat, because an order then costs 0.4 µs to send and 0.5 to receive; as an object it was 0.9 and 1.5. Errors cross as a `Fault` and a line for the operator, never as objects: cloning drops their class and code.
 */
export type Flat = (string | number)[]

export type ThreadRequest =
  /** One batch; an empty one asks only whether the store works. */
  | Flat
  /** Let go of everything and end. */
  | 'close'

export type ThreadAnswer =
  | { readonly kind: 'ready' }
  /** Could not open; the thread ends. `passing`: what is in its way, if that may go by itself. */
  | { readonly kind: 'refused'; readonly reason: string; readonly passing: Fault | undefined }
  | Answered

export interface Answered {
  readonly kind: 'answered'
  /** An answer for each item of the batch, in its order. */
  readonly values: Flat
  /** What kept the thread from its work; undefined when it was done. */
  readonly fault?: Fault
  /** Whether this shows that an earlier fault is over: a transaction that wrote nothing calls a full disk well. */
  readonly proven: boolean
  /** What SQLite said, for the operator. */
  readonly reason?: string
}

export interface ConnectionOptions {
  readonly path: string
  readonly synchronous: 'FULL' | 'EXTRA' | 'NORMAL' | 'OFF'
  readonly busyTimeoutMs: number
}

export interface WriterData extends ConnectionOptions {
  /** One place for each write of a batch, see `CLAIM`. */
  readonly slots: Int32Array<SharedArrayBuffer>
}

/**
 * Who has a write of the batch in flight. Both sides leave `queued` only by compare-and-exchange, so exactly one
 * of them gets it:
 *
 *   queued ──writer, once it holds the write lock──▶ claimed
 *   queued ──event loop, when the signal aborts──▶ withdrawn
 */
export const CLAIM = { queued: 0, claimed: 1, withdrawn: 2 } as const

/** What a batch for the writer is made of: each item is its kind and as many fields as that has. */
export const ITEM = {
  order: 0,
  claim: 1,
  settle: 2,
  redrive: 3,
  handBack: 4,
  purge: 5,
} as const
export const ITEM_LENGTH: Readonly<Record<number, number>> = {
  [ITEM.order]: 15,
  [ITEM.claim]: 3,
  [ITEM.settle]: 3,
  [ITEM.redrive]: 2,
  [ITEM.handBack]: 1,
  [ITEM.purge]: 5,
}

/**
 * The writer's answer for one item. `taken` is followed by the reply that holds the key, `done` by the number of its
 * values and these.
 */
export const VERDICT = {
  passedOver: 0,
  created: 1,
  taken: 2,
  unavailable: 3,
  outdated: 4,
  done: 5,
} as const

/** Where each field of an order stands. Its JSON crosses once and is bound three times. */
export const WRITE = {
  tenant: 0,
  operation: 1,
  key: 2,
  fingerprint: 3,
  replyStatus: 4,
  location: 5,
  orderId: 6,
  customerId: 7,
  orderStatus: 8,
  version: 9,
  json: 10,
  eventId: 11,
  eventType: 12,
  traceparent: 13,
  atMs: 14,
} as const

export function packWrite(into: Flat, { order, event, reply, ...write }: OrderWrite): void {
  into.push(
    ITEM.order,
    write.tenant,
    write.operation,
    write.key,
    write.fingerprint,
    reply.status,
    reply.location,
    order.id,
    order.customerId,
    order.status,
    order.version,
    order.json,
    event.id,
    event.type,
    event.traceparent,
    write.atMs,
  )
}

/**
 * A look-up is its kind, the number of its fields, and these; a finding its code and, when something was `found`, the
 * number of its values, and these. So each side can pass over what it does not read.
 */
export const LOOKUP = { reply: 0, order: 1, orders: 2, events: 3, dead: 4, backlog: 5 } as const
export const FINDING = { absent: 0, found: 1, failed: 2 } as const

export function packReplyLookup(scope: KeyScope): Flat {
  return packLookup(LOOKUP.reply, scope.tenant, scope.operation, scope.key)
}

export function packOrderLookup(tenant: string, id: string): Flat {
  return packLookup(LOOKUP.order, tenant, id)
}

/** Text that sorts after every id: the first page is then asked for as any other. */
const AFTER_ALL_IDS = '\u{10ffff}'

export function packOrdersLookup(
  tenant: string,
  customerId: string,
  { limit, before = AFTER_ALL_IDS }: OrdersPage,
): Flat {
  return packLookup(LOOKUP.orders, tenant, customerId, before, limit)
}

export function packLookup(kind: number, ...fields: Flat): Flat {
  return [kind, fields.length, ...fields]
}

export const REPLY_LENGTH = 5

export function unpackReply(values: Flat, at: number): StoredReply {
  const [fingerprint, status, location, version, json] = values.slice(at, at + REPLY_LENGTH)
  return { fingerprint, status, location, version, json } as StoredReply
}

export function unpackOrder(values: Flat, at: number): StoredOrder {
  const [version, json] = values.slice(at, at + 2)
  return { version, json } as StoredOrder
}

const LISTED_LENGTH = 3

export function unpackOrders(values: Flat, at: number, length: number): readonly ListedOrder[] {
  return Array.from({ length: length / LISTED_LENGTH }, (_, n) => {
    const from = at + n * LISTED_LENGTH
    const [id, version, json] = values.slice(from, from + LISTED_LENGTH)
    return { id, version, json } as ListedOrder
  })
}

const EVENT_LENGTH = 9

export function unpackEvents(values: Flat, at: number, length: number): readonly OutboxEvent[] {
  return Array.from({ length: length / EVENT_LENGTH }, (_, n) => {
    const from = at + n * EVENT_LENGTH
    const [sequence, id, type, subject, tenant, traceparent, atMs, json, attempts] = values.slice(
      from,
      from + EVENT_LENGTH,
    )
    return { sequence, id, type, subject, tenant, traceparent, atMs, json, attempts } as OutboxEvent
  })
}

const DEAD_LENGTH = 8

export function unpackDead(values: Flat, at: number, length: number): readonly DeadEvent[] {
  return Array.from({ length: length / DEAD_LENGTH }, (_, n) => {
    const from = at + n * DEAD_LENGTH
    const [sequence, id, type, subject, tenant, atMs, attempts, reason] = values.slice(
      from,
      from + DEAD_LENGTH,
    )
    return { sequence, id, type, subject, tenant, atMs, attempts, reason } as DeadEvent
  })
}

/** A negative moment stands for none. */
export function unpackBacklog(values: Flat, at: number): Backlog {
  const [pending, dead, oldestAtMs] = values.slice(at, at + 3) as [number, number, number]
  return { pending, dead, oldestAtMs: oldestAtMs < 0 ? undefined : oldestAtMs }
}
