/**
 * What travels down the chain. Each layer may only bring the end nearer: budgets strictly decrease on the way in,
 * whatever the layers are configured to. Below the collapse a call stands for several waiters, and its end moves
 * with the latest of them; so whoever keeps a timer asks again when it fires.
 */
export interface PriceCall {
  readonly currency: string
  readonly skus: readonly string[]
  /** The moment, on the monotonic clock, by which this call must be over. */
  readonly endsAtMs: number
  /** Who set that moment: the request's own lease, or a limit of ours. */
  readonly endedBy: 'lease' | 'limit'
  /** Aborts when nobody waits for this call any more. */
  readonly signal: AbortSignal
  readonly traceparent: string
  readonly fence?: PriceFence
}

/** How new a price must be, on a count that only rises: what was asked for before `notBefore` will not do. */
export interface PriceFence {
  readonly now: number
  readonly notBefore: number
}

/** What pricing said about the SKUs that it was asked for. */
export interface PriceList {
  readonly prices: ReadonlyMap<string, number>
  readonly unknown: readonly string[]
  /** Asked for, and answered with nothing that is a price; always empty outside the batch. */
  readonly bad: readonly string[]
  /** Just fetched, or remembered. */
  readonly source: 'live' | 'fallback'
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
 *   refused  it answered that the call itself is wrong (400, 413, 422); a retry cannot help
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

  /** The failure of a call whose moment has come. */
  static outOfTime(call: Pick<PriceCall, 'endedBy'>): OutboundFailure {
    return new OutboundFailure(call.endedBy === 'lease' ? 'budget' : 'timeout')
  }
}

export type OutboundFailureKind = 'failed' | 'refused' | 'timeout' | 'budget' | 'shed'

/** Whether `error` is an outbound failure of one of these kinds. */
export function isFailure(error: unknown, ...kinds: readonly OutboundFailureKind[]): boolean {
  return error instanceof OutboundFailure && kinds.includes(error.kind)
}

/**
 * How an attempt was settled. `late`: it succeeded after another had won. `shed`: it was not sent, since what was
 * left of its budget lay below the floor.
 */
export type AttemptResult = 'won' | 'failed' | 'cancelled' | 'late' | 'expired' | 'shed'

/** How a call left the chain; `cancelled` when the request ended first. */
export type CallResult = 'ok' | OutboundFailureKind | 'cancelled'
