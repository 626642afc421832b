import { randomHex } from './random.ts'

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

/** The same trace and flags, with a span of its own for a call that is made on its behalf. */
export function childSpan(traceparent: string): string {
  return `${traceparent.slice(0, 36)}${randomHex(8)}${traceparent.slice(52)}`
}

/** Continues the caller's trace with a span of our own, or starts a new one. */
export function traceFrom(header: string | undefined): TraceContext {
  const parts = header === undefined ? null : TRACEPARENT.exec(header)
  if (parts && !(header?.startsWith('00') && header.length !== VERSION_0_LENGTH)) {
    const [, traceId = '', callerFlags = '00'] = parts
    // Only the sampled bit is defined; all others go out as zero (section 3.2.2.5.2).
    const flags = Number.parseInt(callerFlags, 16) & 1 ? '01' : '00'
    return { traceId, traceparent: `00-${traceId}-${randomHex(8)}-${flags}` }
  }
  const traceId = randomHex(16)
  return { traceId, traceparent: `00-${traceId}-${randomHex(8)}-01` }
}
