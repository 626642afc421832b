/**
 * What travels down the chain. Each layer may only bring `endsAtMs` nearer: budgets strictly decrease on the way
 * in, whatever the layers are configured to.
 */
export interface PriceCall {
  readonly currency: string
  readonly skus: readonly string[]
  /** The moment, on the monotonic clock, by which this call must be over. */
  readonly endsAtMs: number
  /** Who set that moment: the request's own lease, or a limit of ours. */
  readonly endedBy: 'lease' | 'limit'
  /** Aborts when the request ends. */
  readonly signal: AbortSignal
  readonly traceId: string
}

/** What pricing said about the SKUs that it was asked for. */
export interface PriceList {
  readonly prices: ReadonlyMap<string, number>
  readonly unknown: readonly string[]
}

export type Fetch = (call: PriceCall) => Promise<PriceList>
/** One layer of the chain: wraps what is inside it. */
export type Layer = (next: Fetch) => Fetch

/** The call, to be over `limitMs` from now at the latest. */
export function cut(call: PriceCall, nowMs: number, limitMs: number): PriceCall {
  const limitAtMs = nowMs + limitMs
  return limitAtMs < call.endsAtMs ? { ...call, endsAtMs: limitAtMs, endedBy: 'limit' } : call
}

/**
 * Why a call to pricing brought no prices.
 *   failed   it answered with an error, nonsense, or not at all on the socket; worth a retry
 *   refused  it answered that the call itself is wrong; a retry cannot help
 *   timeout  one of our limits ran out
 *   budget   the request's lease left no (more) time; says nothing about pricing
 *   shed     not tried: breaker open or bulkhead full
 */
export class OutboundFailure extends Error {
  readonly kind: OutboundFailureKind

  constructor(kind: OutboundFailureKind, options?: ErrorOptions) {
    super(kind, options)
    this.name = 'OutboundFailure'
    this.kind = kind
  }
}

export type OutboundFailureKind = 'failed' | 'refused' | 'timeout' | 'budget' | 'shed'

/** How an attempt was settled. */
export type AttemptResult = 'won' | 'failed' | 'cancelled' | 'expired'

/** How a call left the chain; `cancelled` when the request ended first. */
export type CallResult = 'ok' | OutboundFailureKind | 'cancelled'
