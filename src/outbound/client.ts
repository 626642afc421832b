import type { Clock } from '../runtime/index.ts'
import { attempt } from './attempt.ts'
import { batch } from './batch.ts'
import { Breaker, type BreakerState } from './breaker.ts'
import { bulkhead } from './bulkhead.ts'
import {
  cut,
  type Fetch,
  type Layer,
  OutboundFailure,
  type PriceCall,
  type PriceFence,
  type PriceList,
} from './call.ts'
import type { OutboundChannels } from './channels.ts'
import { collapse } from './collapse.ts'
import { fallback, type PriceShelf } from './fallback.ts'
import { hedge } from './hedge.ts'
import { LatencyWindow } from './latency-window.ts'
import type { OutboundOptions } from './options.ts'
import { retry } from './retry.ts'
import { RetryBudget } from './retry-budget.ts'
import { Transport } from './transport.ts'

/** What a request brings along when it asks for prices. */
export interface PriceRequest {
  readonly currency: string
  readonly skus: readonly string[]
  /** The moment, on the monotonic clock, by which the request needs them. */
  readonly neededByMs: number
  readonly signal: AbortSignal
  readonly traceparent: string
  readonly fence?: PriceFence
}

/**
 * Pricing client (B3): prices from the pricing service within a budget that strictly decreases on the way in:
 * what the lease has left > leaseMs > totalMs > attemptMs. The chain, outermost first, is the list below.
 */
export class PricingClient {
  readonly #channels: OutboundChannels
  readonly #breaker: Breaker
  readonly #transport: Transport
  readonly #fetch: Fetch

  constructor(baseUrl: string, options: OutboundOptions, deps: PricingClientDeps) {
    const { channels, clock } = deps
    const extras = new RetryBudget(options.retryBudgetRatio)
    const hedges = new RetryBudget(options.hedge.maxRatio, undefined, 0)
    this.#channels = channels
    this.#breaker = new Breaker(options.breaker, channels.breaker, clock)
    this.#transport = new Transport(baseUrl, options)
    this.#fetch = chain(
      [
        within(options.leaseMs, clock),
        fallback(deps.shelf, channels.fallback),
        this.#breaker.gate,
        bulkhead(options.maxConcurrent),
        within(options.totalMs, clock),
        collapse(clock),
        batch(options.batch, channels.batch, clock),
        this.#breaker.judge,
        RetryBudget.deposits(extras, hedges),
        retry(options, extras, channels, clock),
      ],
      hedge(
        {
          options: options.hedge,
          attemptMs: options.attemptMs,
          latencies: new LatencyWindow(clock),
          hedges,
          extras,
          channels,
          clock,
        },
        attempt({ transport: this.#transport, options, channels, clock }),
      ),
    )
  }

  get breakerState(): BreakerState {
    return this.#breaker.state
  }

  /** Throws `OutboundFailure`, or the signal's reason when the request has ended. */
  async fetch(request: PriceRequest): Promise<PriceList> {
    const { neededByMs, ...rest } = request
    const call: PriceCall = { ...rest, endsAtMs: neededByMs, endedBy: 'lease' }
    try {
      const list = await this.#fetch(call)
      this.#channels.call.publish({ result: 'ok' })
      return list
    } catch (error) {
      this.#channels.call.publish({ result: error instanceof OutboundFailure ? error.kind : 'cancelled' })
      throw error
    }
  }

  close(): Promise<void> {
    return this.#transport.close()
  }
}

export interface PricingClientDeps {
  readonly channels: OutboundChannels
  readonly clock: Clock
  /** Where the fallback finds the last good prices. */
  readonly shelf: PriceShelf
}

function chain(layers: readonly Layer[], innermost: Fetch): Fetch {
  return layers.reduceRight((next, layer) => layer(next), innermost)
}

/** Everything inside is over `limitMs` after it was entered, at the latest. */
function within(limitMs: number, clock: Clock): Layer {
  return next => call => next(cut(call, clock.nowMs(), limitMs))
}
