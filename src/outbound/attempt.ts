import { Settlement } from '../lease/index.ts'
import { type Clock, childSpan, randomHex, type Timer } from '../runtime/index.ts'
import { type AttemptResult, OutboundFailure, type PriceCall, type PriceList } from './call.ts'
import type { OutboundChannels } from './channels.ts'
import type { OutboundOptions } from './options.ts'
import type { Transport } from './transport.ts'

/** An attempt, as the race that launches it sees it. */
export interface AttemptCall {
  readonly call: PriceCall
  /** Cancels this attempt alone. */
  readonly signal: AbortSignal
  /** Asked once, when it succeeds: true when nothing has won before. */
  readonly claim: () => boolean
}

export type Launch = (attempt: AttemptCall) => Promise<PriceList>

/**
 * Attempt: one try with an id, a moment by which it is over, and exactly one result.
 *
 *   launched ──answer, claimed──▶ won         ──answer, another had won──▶ late
 *   launched ──error──▶ failed
 *   launched ──its moment, or its call's──▶ expired      the exchange is aborted
 *   launched ──cancelled──▶ cancelled         the exchange is aborted
 *   launched ──too little time left──▶ shed   nothing was sent
 *
 * One timer serves all budgets: whichever of the attempt's own limit and the call's end comes first is the moment.
 */
export function attempt(parts: AttemptParts): Launch {
  const { channels, clock } = parts
  return async ({ call, signal, claim }) => {
    signal.throwIfAborted()
    channels.launched.publish({})
    const settlement = new Settlement<AttemptResult>(channels.late)
    const moment = new Moment(call, clock, parts.options.attemptMs)
    const exchange = new AbortController()
    const stop = (result: AttemptResult, reason: unknown) => {
      if (settlement.winner === undefined && settlement.settle(result)) exchange.abort(reason)
    }
    // A call that ran into a limit of ours has expired; all else that ends it from outside cancels it.
    const onAbort = () =>
      stop(signal.reason instanceof OutboundFailure ? 'expired' : 'cancelled', signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const leftMs = moment.leftMs()
    try {
      if (leftMs < MIN_ATTEMPT_MS) {
        stop('shed', moment.failure())
        throw exchange.signal.reason
      }
      moment.arm(() => stop('expired', moment.failure()))
      const list = await parts.transport.send(call, exchange.signal, {
        id: randomHex(8),
        traceparent: childSpan(call.traceparent),
        leftMs,
      })
      // It was stopped while its answer was on the way in: counted as late, and answered to nobody.
      if (settlement.winner !== undefined) settlement.settle('won')
      else if (settlement.settle(claim() ? 'won' : 'late') && settlement.winner === 'won') return list
      throw LATE
    } catch (error) {
      // Once stopped, what the exchange says on its way down is an echo of that, not an outcome.
      if (exchange.signal.aborted) throw exchange.signal.reason
      if (settlement.winner === undefined) settlement.settle('failed')
      throw error instanceof OutboundFailure ? error : new OutboundFailure('failed', { cause: error })
    } finally {
      moment.disarm()
      signal.removeEventListener('abort', onAbort)
      if (settlement.winner) channels.attempt.publish({ result: settlement.winner })
    }
  }
}

export interface AttemptParts {
  readonly transport: Pick<Transport, 'send'>
  readonly options: Pick<OutboundOptions, 'attemptMs'>
  readonly channels: OutboundChannels
  readonly clock: Clock
}

/** When an attempt is over: its own limit or the call's end, which may move away while it runs. */
class Moment {
  readonly #call: PriceCall
  readonly #clock: Clock
  readonly #limitAtMs: number
  #timer: Timer | undefined
  #disarmed = false

  constructor(call: PriceCall, clock: Clock, attemptMs: number) {
    this.#call = call
    this.#clock = clock
    this.#limitAtMs = clock.nowMs() + attemptMs
  }

  leftMs(): number {
    return Math.min(this.#limitAtMs, this.#call.endsAtMs) - this.#clock.nowMs()
  }

  failure(): OutboundFailure {
    return this.#limitAtMs < this.#call.endsAtMs
      ? new OutboundFailure('timeout')
      : OutboundFailure.outOfTime(this.#call)
  }

  arm(onOver: () => void): void {
    const judge = () => {
      if (this.#disarmed) return
      if (this.leftMs() > 1) this.arm(onOver)
      else onOver()
    }
    // After a stall the timers run before the sockets are read: one poll more, so that an answer which came in time
    // is not held against pricing because we were late to look, and a waiter who came in time still extends it.
    this.#timer = this.#clock.setTimer(() => this.#clock.afterPoll(judge), Math.ceil(this.leftMs()))
  }

  disarm(): void {
    this.#disarmed = true
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer)
  }
}

/** An attempt with less time than this cannot succeed over any network; it is not sent. */
export const MIN_ATTEMPT_MS = 2

/** What a late success comes to; nobody is left to see it. */
const LATE = new Error('late')
