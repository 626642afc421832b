import type { Clock } from '../runtime/index.ts'
import type { AdmissionChannels } from './channels.ts'
import { ReleaseRate } from './release-rate.ts'

/**
 * Gate (B1): is this request taken at all? A fixed number of permits and no queue: a queue turns refusal into
 * waiting, and waiting raises the very concurrency it was meant to bound (L = λW). Check and take are one
 * synchronous step, so there is no moment between them for a second caller.
 *
 *   free ──enter()──▶ held ──release()──▶ free        release() works once; again it does nothing
 */
export class Gate {
  readonly maxConcurrent: number
  #inFlight = 0
  readonly #rate: ReleaseRate
  readonly #channels: AdmissionChannels
  readonly #random: () => number

  constructor(
    options: { maxConcurrent: number },
    channels: AdmissionChannels,
    clock: Clock,
    random: () => number = Math.random,
  ) {
    this.maxConcurrent = options.maxConcurrent
    this.#channels = channels
    this.#rate = new ReleaseRate(clock)
    this.#random = random
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** A permit, or undefined when every one is held. */
  enter(): Permit | undefined {
    if (this.#inFlight >= this.maxConcurrent) {
      this.#rate.refused()
      this.#channels.rejected.publish({ scope: 'global' })
      return undefined
    }
    this.#inFlight++
    let held = true
    return {
      release: () => {
        if (!held) return
        held = false
        this.#inFlight--
        this.#rate.released()
      },
    }
  }

  /**
   * When a refused caller should come back, in ms: the time in which the present holders and all lately refused
   * callers would be served at the measured release rate, spread by ±50 % so that they do not return in step.
   */
  retryAfterMs(): number {
    const baseMs = this.#rate.clearsInMs(this.#inFlight, UNMEASURED_RETRY_AFTER_MS)
    const spreadMs = baseMs * (0.5 + this.#random())
    return Math.round(Math.min(MAX_RETRY_AFTER_MS, Math.max(MIN_RETRY_AFTER_MS, spreadMs)))
  }
}

export interface Permit {
  release(): void
}

// Below 20 ms a retry meets the same burst; beyond 30 s the measurement says nothing any more.
const MIN_RETRY_AFTER_MS = 20
const MAX_RETRY_AFTER_MS = 30_000
// While nothing has been released yet.
const UNMEASURED_RETRY_AFTER_MS = 1_000
