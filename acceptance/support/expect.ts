import { type Answer, describe, jsonOf } from './answer.ts'

/** Throws `sentence`, which says what was expected, unless `condition` holds. */
export function demand(condition: boolean, sentence: string): asserts condition {
  if (!condition) throw new Error(`expected ${sentence}`)
}

export function same(seen: unknown, expected: unknown, what: string): void {
  demand(Object.is(seen, expected), `${what} to be ${JSON.stringify(expected)}, saw ${JSON.stringify(seen)}`)
}

export function matches(seen: string | undefined, pattern: RegExp, what: string): void {
  demand(seen !== undefined && pattern.test(seen), `${what} to match ${pattern}, saw ${JSON.stringify(seen)}`)
}

export function between(seen: number, least: number, most: number, what: string): void {
  demand(seen >= least && seen <= most, `${what} between ${least} and ${most}, saw ${seen.toFixed(1)}`)
}

/** An answer rather than a closed socket. */
export function answered(answer: Answer | undefined): Answer {
  demand(answer !== undefined, 'an answer, saw the connection closed')
  return answer
}

export function status(answer: Answer, expected: number): void {
  demand(answer.status === expected, `status ${expected}, saw ${describe(answer, 300)}`)
}

// What a caller must never read in any answer: the words of an exception, a query, a place on the disk.
const INTERNAL =
  /\bselect\b.+\bfrom\b|insert into|\bsqlite|constraint failed|node_modules|node:internal|\.(ts|js|db)\b|\bat \S+ \(|Error:|\bE(CONN|ADDR|PIPE|NO|ACC|TIME)[A-Z]+|unexpected (token|end|non-whitespace)|in JSON at|\/tmp\/|file:\/\/|undici|127\.0\.0\.1/i

/** Every response carries a trace id, and none says what it was built with. */
export function plain(answer: Answer): void {
  matches(answer.headers['x-trace-id'], /^(?!0{32})[0-9a-f]{32}$/, 'X-Trace-Id')
  same(answer.headers['x-powered-by'], undefined, 'X-Powered-By')
}

const PROBLEM_MEMBERS = ['type', 'title', 'status', 'code', 'detail', 'traceId']
const EXTENSIONS = ['instance', 'errors', 'retryAfterMs', 'budgetMs', 'stage', 'committed']

/** A problem document (RFC 9457) that is whole, and lets nothing internal out. Gives its members. */
export function problem(answer: Answer, expected: number, ...codes: string[]): Record<string, unknown> {
  status(answer, expected)
  plain(answer)
  matches(answer.headers['content-type'], /^application\/problem\+json(; ?charset=utf-8)?$/i, 'Content-Type')
  same(answer.headers['cache-control'], 'no-store', 'Cache-Control')
  const body = jsonOf(answer)
  const missing = PROBLEM_MEMBERS.filter(member => body[member] === undefined)
  demand(missing.length === 0, `all members of a problem, missed ${missing}`)
  const foreign = Object.keys(body).filter(member => ![...PROBLEM_MEMBERS, ...EXTENSIONS].includes(member))
  demand(foreign.length === 0, `no member beyond the contract, saw ${foreign}`)
  demand(codes.includes(String(body.code)), `code ${codes.join(' or ')}, saw ${JSON.stringify(body.code)}`)
  same(body.type, `/problems/${body.code}`, 'type')
  same(body.status, expected, 'the member status')
  same(body.traceId, answer.headers['x-trace-id'], 'traceId against X-Trace-Id')
  // Without the trace id, whose letters may look like anything.
  const internal = INTERNAL.exec(answer.body.replace(String(body.traceId), ''))
  demand(internal === null, `nothing internal in the body, saw "${internal?.[0]}"`)
  if (expected === 429 || expected === 503) retryable(answer)
  return body
}

/** The pointers of a problem's `errors[]`. */
export function pointers(answer: Answer): string[] {
  const { errors } = jsonOf(answer)
  demand(Array.isArray(errors) && errors.length > 0, `errors[], saw ${JSON.stringify(errors)}`)
  return errors.map(({ pointer, message }: { pointer?: unknown; message?: unknown }) => {
    demand(typeof message === 'string' && message !== '', `a message with each pointer, saw ${answer.body}`)
    matches(String(pointer), /^(\/|$)/, 'pointer')
    return String(pointer)
  })
}

function retryable(answer: Answer): void {
  matches(answer.headers['retry-after'], /^[1-9]\d*$/, 'Retry-After')
  if (answer.status !== 429) return
  const { retryAfterMs } = jsonOf(answer)
  demand(Number.isInteger(retryAfterMs) && Number(retryAfterMs) > 0, `retryAfterMs, saw ${retryAfterMs}`)
}

/** An order is made accepted and changes once, so that each status has its version. */
const VERSIONS = { accepted: 1, cancelled: 2 }

export type OrderStatus = keyof typeof VERSIONS

export interface OrderBody {
  readonly id: string
  readonly status: OrderStatus
  readonly version: number
  readonly customerId: string
  readonly currency: string
  readonly items: readonly { sku: string; quantity: number; unitPrice: number; lineTotal: number }[]
  readonly total: number
  readonly pricing: string
  readonly reference?: string
  readonly createdAt: string
  readonly updatedAt: string
}

const ORDER_MEMBERS = 'createdAt,currency,customerId,id,items,pricing,status,total,updatedAt,version'

/** A 201 with everything the contract says of it. `replayed` tells which of the two it must be. */
export function created(answer: Answer, replayed = false): OrderBody {
  status(answer, 201)
  plain(answer)
  same(answer.headers['idempotent-replayed'], replayed ? 'true' : undefined, 'Idempotent-Replayed')
  const order = orderOf(answer)
  same(answer.headers.location, `/v1/orders/${order.id}`, 'Location')
  return order
}

/** A 200 with a cancelled order and everything the contract says of it. `replayed` as above. */
export function cancelled(answer: Answer, replayed = false): OrderBody {
  status(answer, 200)
  plain(answer)
  same(answer.headers['idempotent-replayed'], replayed ? 'true' : undefined, 'Idempotent-Replayed')
  return orderOf(answer, 'cancelled')
}

/** An order in the body, whole and consistent, in this status. */
export function orderOf(answer: Answer, expected: OrderStatus = 'accepted'): OrderBody {
  validated(answer)
  const order = whole(jsonOf(answer))
  same(order.status, expected, 'status')
  return order
}

export interface Page {
  readonly orders: readonly OrderBody[]
  readonly nextCursor: string | null
}

/** A 200 with a page of orders, each of them whole, and everything the contract says of it. */
export function pageOf(answer: Answer): Page {
  status(answer, 200)
  plain(answer)
  validated(answer)
  const page = jsonOf(answer)
  same(Object.keys(page).join(), 'orders,nextCursor', 'the members of a page')
  const { orders, nextCursor } = page
  demand(Array.isArray(orders), `a list of orders, saw ${describe(answer, 300)}`)
  if (nextCursor !== null) matches(String(nextCursor), /^[A-Za-z0-9_-]{1,64}$/, 'nextCursor')
  return { orders: orders.map(whole), nextCursor: nextCursor as Page['nextCursor'] }
}

function validated({ headers }: Answer): void {
  matches(headers['content-type'], /^application\/json(; ?charset=utf-8)?$/i, 'Content-Type')
  matches(headers.etag, /^"[\x21\x23-\x7e]+"$/, 'a strong ETag')
}

function whole(json: object): OrderBody {
  const order = json as OrderBody
  const members = Object.keys(order).filter(member => member !== 'reference')
  same(members.sort().join(), ORDER_MEMBERS, 'the members of an order')
  matches(order.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/, 'a UUIDv7')
  demand(Object.hasOwn(VERSIONS, order.status), `a status of an order, saw ${order.status}`)
  same(order.version, VERSIONS[order.status], `the version of an order that is ${order.status}`)
  same(order.pricing, 'live', 'pricing')
  let total = 0
  for (const item of order.items) {
    same(Object.keys(item).sort().join(), 'lineTotal,quantity,sku,unitPrice', 'the members of an item')
    const { quantity, unitPrice, lineTotal } = item
    demand(
      [quantity, unitPrice, lineTotal].every(Number.isSafeInteger),
      `integers, saw ${JSON.stringify(item)}`,
    )
    same(lineTotal, quantity * unitPrice, 'lineTotal')
    total += lineTotal
  }
  same(order.total, total, 'total')
  for (const time of [order.createdAt, order.updatedAt]) {
    matches(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'a time')
  }
  demand(order.createdAt <= order.updatedAt, `${order.createdAt} ≤ updatedAt, saw ${order.updatedAt}`)
  return order
}
