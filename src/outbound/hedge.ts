import { Settlement } from '../lease/index.ts'
import type { Clock, Timer } from '../runtime/index.ts'
import type { Launch } from './attempt.ts'
import { type Fetch, isFailure, type PriceCall, type PriceList } from './call.ts'
import type { OutboundChannels } from './channels.ts'
import type { LatencyWindow } from './latency-window.ts'
import type { OutboundOptions } from './options.ts'
import type { RetryBudget } from './retry-budget.ts'

/**
 * Hedge: when an attempt takes longer than most have lately, a second one starts beside it, and the first success
 * wins (Dean, Barroso: "The Tail at Scale", CACM 2013).
 *
 *   one ──success──▶ won                one ──failure──▶ failed
 *   one ──percentile passed, tokens──▶ two        without a token it stays one, and fails at once if it fails
 *   two ──first success──▶ won, the other is cancelled
 *   two ──a failure──▶ last             the other one decides
 *   two ──a refusal──▶ failed, the other is cancelled
 *   any ──the call ends──▶ ended, all are cancelled
 *
 * At most `maxRatio` of the calls get a second attempt, and each takes a token from the budget that retries share.
 */
export interface HedgeParts {
  readonly options: OutboundOptions['hedge']
  readonly attemptMs: number
  readonly latencies: LatencyWindow
  /** `maxRatio` of the calls. */
  readonly hedges: RetryBudget
  /** What hedges share with retries. */
  readonly extras: RetryBudget
  readonly channels: OutboundChannels
  readonly clock: Clock
}

export function hedge(parts: HedgeParts, launch: Launch): Fetch {
  return call => new Promise((resolve, reject) => new Race(parts, launch, call, resolve, reject).start())
}

class Race {
  readonly #parts: HedgeParts
  readonly #attempt: Launch
  readonly #call: PriceCall
  readonly #resolve: (list: PriceList) => void
  readonly #reject: (error: unknown) => void
  readonly #settlement: Settlement<'won' | 'failed' | 'ended'>
  readonly #running = new Set<AbortController>()
  readonly #onAbort = () => this.#finish('ended', this.#call.signal.reason)
  #timer: Timer | undefined

  constructor(
    parts: HedgeParts,
    attempt: Launch,
    call: PriceCall,
    resolve: (list: PriceList) => void,
    reject: (error: unknown) => void,
  ) {
    this.#parts = parts
    this.#attempt = attempt
    this.#call = call
    this.#resolve = resolve
    this.#reject = reject
    this.#settlement = new Settlement(parts.channels.late)
  }

  start(): void {
    const { options, latencies, clock } = this.#parts
    if (this.#call.signal.aborted) return this.#reject(this.#call.signal.reason)
    this.#call.signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#launch('first')
    const usualMs = options.enabled ? latencies.percentileMs(options.percentile) : undefined
    if (usualMs === undefined || this.#settlement.winner) return
    this.#timer = clock.setTimer(() => this.#second(), Math.max(options.minDelayMs, usualMs))
  }

  #second(): void {
    const { hedges, extras, channels } = this.#parts
    this.#timer = undefined
    if (!hedges.withdraw()) return channels.hedge.publish({ result: 'shed' })
    if (!extras.withdraw()) {
      hedges.refund()
      return channels.hedge.publish({ result: 'shed' })
    }
    this.#launch('second')
  }

  #launch(which: 'first' | 'second'): void {
    const { channels, clock, latencies } = this.#parts
    const startedMs = clock.nowMs()
    const controller = new AbortController()
    this.#running.add(controller)
    const claim = () => {
      if (!this.#settlement.settle('won')) return false
      this.#running.delete(controller)
      this.#stop()
      return true
    }
    this.#attempt({ call: this.#call, signal: controller.signal, claim }).then(
      list => {
        latencies.observe(clock.nowMs() - startedMs)
        if (which === 'second') channels.hedge.publish({ result: 'won' })
        this.#resolve(list)
      },
      (error: unknown) => {
        this.#running.delete(controller)
        // An attempt that had all its time and used it up is a latency; one cut short says nothing.
        const tookMs = clock.nowMs() - startedMs
        if (isFailure(error, 'timeout') && tookMs > this.#parts.attemptMs - 1) latencies.observe(tookMs)
        if (which === 'second') channels.hedge.publish({ result: 'lost' })
        if (
          this.#settlement.winner === undefined &&
          (isFailure(error, 'refused') || this.#running.size === 0)
        ) {
          this.#finish('failed', error)
        }
      },
    )
  }

  #finish(kind: 'failed' | 'ended', error: unknown): void {
    if (!this.#settlement.settle(kind)) return
    this.#stop(kind === 'ended' ? error : LOST)
    this.#reject(error)
  }

  /** Cancels what still runs; each settles its own attempt at once. */
  #stop(reason: unknown = LOST): void {
    if (this.#timer !== undefined) this.#parts.clock.clearTimer(this.#timer)
    this.#timer = undefined
    this.#call.signal.removeEventListener('abort', this.#onAbort)
    for (const controller of this.#running) controller.abort(reason)
    this.#running.clear()
  }
}

/** Why a loser was cancelled; never seen by a caller. */
const LOST = new Error('lost')
