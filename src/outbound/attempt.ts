import { Settlement } from '../lease/index.ts'
import { type Clock, randomHex } from '../runtime/index.ts'
import { type AttemptResult, cut, type Fetch, OutboundFailure, type PriceCall } from './call.ts'
import type { OutboundChannels } from './channels.ts'
import type { OutboundOptions } from './options.ts'
import type { Transport } from './transport.ts'

/**
 * Attempt: one try with an id, a moment by which it is over, and exactly one result.
 *
 *   launched ──answer──▶ won        ──error──▶ failed
 *   launched ──its moment──▶ expired         the exchange is aborted
 *   launched ──the request ends──▶ cancelled the exchange is aborted
 *
 * One timer serves all three budgets: whichever of attempt, total and lease comes first is the moment.
 */
export function attempt(
  transport: Pick<Transport, 'send'>,
  options: OutboundOptions,
  channels: OutboundChannels,
  clock: Clock,
): Fetch {
  return async call => {
    const bounded = cut(call, clock.nowMs(), options.attemptMs)
    const leftMs = bounded.endsAtMs - clock.nowMs()
    if (leftMs < MIN_ATTEMPT_MS) throw outOfTime(bounded)
    call.signal.throwIfAborted()

    const settlement = new Settlement<AttemptResult>(channels.late)
    const exchange = new AbortController()
    const stop = (result: AttemptResult, reason: unknown) => {
      if (settlement.winner === undefined && settlement.settle(result)) exchange.abort(reason)
    }
    const onAbort = () => stop('cancelled', call.signal.reason)
    call.signal.addEventListener('abort', onAbort, { once: true })
    // After a stall the timers run before the sockets are read: one poll more, so that an answer which came in
    // time is not held against pricing because we were late to look.
    const timer = clock.setTimer(
      () => clock.afterPoll(() => stop('expired', outOfTime(bounded))),
      Math.ceil(leftMs),
    )
    try {
      const list = await transport.send(
        { ...bounded, signal: exchange.signal },
        { id: randomHex(8), traceparent: `00-${call.traceId}-${randomHex(8)}-01`, leftMs },
      )
      if (!settlement.settle('won')) throw exchange.signal.reason
      return list
    } catch (error) {
      // Once stopped, what the exchange says on its way down is an echo of that, not an outcome.
      if (settlement.winner === 'cancelled' || settlement.winner === 'expired') throw exchange.signal.reason
      settlement.settle('failed')
      throw error instanceof OutboundFailure ? error : new OutboundFailure('failed', { cause: error })
    } finally {
      clock.clearTimer(timer)
      call.signal.removeEventListener('abort', onAbort)
      if (settlement.winner) channels.attempt.publish({ result: settlement.winner })
    }
  }
}

function outOfTime(call: PriceCall): OutboundFailure {
  return new OutboundFailure(call.endedBy === 'lease' ? 'budget' : 'timeout')
}

/** An attempt with less time than this cannot succeed over any network; it is not launched. */
const MIN_ATTEMPT_MS = 2
