import { randomFillSync } from 'node:crypto'

/**
 * Trace context as W3C Trace Context level 1 writes it (`traceparent`, section 3.2). An invalid header starts
 * a new trace, as section 3.2.2.5 asks, instead of failing the request.
 */
export interface TraceContext {
  /** 32 lower-case hex digits. */
  readonly traceId: string
  /** The `traceparent` to send onwards and to store beside an event. */
  readonly traceparent: string
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?:-.*)?$/
const VERSION_0_LENGTH = 55

/** Continues the caller's trace with a span of our own, or starts a new one. */
export function traceFrom(header: string | undefined): TraceContext {
  const parts = header === undefined ? null : TRACEPARENT.exec(header)
  if (parts && !(header?.startsWith('00') && header.length !== VERSION_0_LENGTH)) {
    const [, traceId = '', flags = '00'] = parts
    return { traceId, traceparent: `00-${traceId}-${randomHex(8)}-${flags}` }
  }
  const traceId = randomHex(16)
  return { traceId, traceparent: `00-${traceId}-${randomHex(8)}-01` }
}

// One call into the random generator for 256 ids: a call each costs 1 µs, a slice of a filled pool 0.1 µs.
const POOL_BYTES = 4096
const pool = Buffer.allocUnsafe(POOL_BYTES)
let used = POOL_BYTES

/** `bytes` random bytes as lower-case hex. */
export function randomHex(bytes: number): string {
  if (used + bytes > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const start = used
  used += bytes
  return pool.toString('hex', start, used)
}
