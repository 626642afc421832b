import type { Channel, Clock } from '../runtime/index.ts'
import { isFailure, type Layer, OutboundFailure } from './call.ts'
import { FailureWindow } from './failure-window.ts'
import type { OutboundOptions } from './options.ts'

/**
 * Breaker: while pricing is known to be down, calls fail at once instead of holding permits.
 *
 *   closed ──failure ratio reached, with enough requests──▶ open
 *   open ──halfOpenAfterMs──▶ half-open              calls before that are shed
 *   half-open ──halfOpenCalls requests succeeded──▶ closed
 *   half-open ──a request failed──▶ open             callers beyond the probes are shed, never queued
 *
 * It has two layers. The gate stands outermost and lets callers in or sheds them. The judge stands inside collapse
 * and batch, outside retry and hedge, so that one request to pricing is one sample however many wait for it: thirty
 * callers of one failed flight are no thirty failures. It is blind to what says nothing about pricing: a client that
 * hung up, a lease that ran out. A probe that ends so merely gives its place back.
 *
 * Ours, because cockatiel's breaker counts on the wall clock, keeps a filled window alive across idle time, takes
 * a cancelled probe for a success, and makes callers wait for the probes of others.
 */
export type BreakerState = 'closed' | 'open' | 'half-open'

type State =
  | { readonly kind: 'closed' }
  | { readonly kind: 'open'; readonly sinceMs: number }
  | { readonly kind: 'half-open'; inFlight: number; succeeded: number }

export class Breaker {
  #state: State = { kind: 'closed' }
  readonly #options: OutboundOptions['breaker']
  readonly #window: FailureWindow
  readonly #channel: Channel<{ state: BreakerState }>
  readonly #clock: Clock

  constructor(options: OutboundOptions['breaker'], channel: Channel<{ state: BreakerState }>, clock: Clock) {
    this.#options = options
    this.#channel = channel
    this.#clock = clock
    this.#window = new FailureWindow(options.samplingSeconds, clock)
  }

  get state(): BreakerState {
    return this.#state.kind
  }

  readonly gate: Layer = next => async call => {
    const entered = this.#enter()
    try {
      return await next(call)
    } finally {
      if (entered.kind === 'half-open') entered.inFlight--
    }
  }

  readonly judge: Layer = next => async call => {
    const begun = this.#state
    try {
      const list = await next(call)
      this.#count(begun, true)
      return list
    } catch (error) {
      if (isFailure(error, 'failed', 'timeout')) this.#count(begun, false)
      throw error
    }
  }

  #enter(): State {
    const state = this.#state
    if (state.kind === 'open' && this.#clock.nowMs() - state.sinceMs >= this.#options.halfOpenAfterMs) {
      this.#become({ kind: 'half-open', inFlight: 0, succeeded: 0 })
    }
    const now = this.#state
    if (now.kind === 'open') throw new OutboundFailure('shed')
    if (now.kind === 'half-open') {
      if (now.inFlight + now.succeeded >= this.#options.halfOpenCalls) throw new OutboundFailure('shed')
      now.inFlight++
    }
    return now
  }

  /** Counts an outcome, if the state that the request began under still stands. */
  #count(begun: State, good: boolean): void {
    if (begun !== this.#state || begun.kind === 'open') return
    if (begun.kind === 'half-open') {
      if (!good) this.#open()
      else if (++begun.succeeded >= this.#options.halfOpenCalls) {
        this.#window.clear()
        this.#become({ kind: 'closed' })
      }
      return
    }
    this.#window.count(good)
    if (good) return
    const { calls, failureRatio } = this.#window.read()
    const enough = calls >= this.#options.minimumRps * this.#options.samplingSeconds
    if (enough && failureRatio >= this.#options.failureRatio) this.#open()
  }

  #open(): void {
    this.#become({ kind: 'open', sinceMs: this.#clock.nowMs() })
  }

  #become(state: State): void {
    this.#state = state
    this.#channel.publish({ state: state.kind })
  }
}
