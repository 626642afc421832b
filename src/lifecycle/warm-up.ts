import { type Channel, type Clock, sleep } from '../runtime/index.ts'
import type { Probe } from './lifecycle.ts'

/** Something that an instance must be able to do before it is ready. */
export interface Step {
  readonly name: string
  /** What went wrong, in words fit for a caller; undefined when nothing did. */
  play(signal: AbortSignal): Promise<string | undefined>
}

/**
 * Warm-up: plays its steps until they are as quick as they will be, and has them prove on the way that the instance
 * works. A step that fails leaves it unready: all of them are tried again after a pause, for as long as it takes.
 *
 *   trying ──a step fails──▶ pausing ──RETRY_MS──▶ trying
 *   trying ──all steps, ROUNDS times or for WARM_MS──▶ passed
 *   any ──signal──▶ given up
 */
export class WarmUp implements Probe {
  readonly name = 'warmUp'
  readonly #clock: Clock
  readonly #failed: Channel<WarmUpFailed>
  #trouble: string | undefined = 'has not passed yet'

  constructor(clock: Clock, failed: Channel<WarmUpFailed>) {
    this.#clock = clock
    this.#failed = failed
  }

  degraded(): string | undefined {
    return this.#trouble
  }

  /** True once it has passed; false when the signal came first. */
  async run(steps: readonly Step[], signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const trouble = await this.#try(steps, signal)
      if (signal.aborted) break
      if (trouble !== undefined && trouble !== this.#trouble) this.#failed.publish({ reason: trouble })
      this.#trouble = trouble
      if (trouble === undefined) return true
      await sleep(this.#clock, RETRY_MS, signal).catch(() => {})
    }
    return false
  }

  async #try(steps: readonly Step[], signal: AbortSignal): Promise<string | undefined> {
    const endMs = this.#clock.nowMs() + WARM_MS
    for (let round = 0; round < ROUNDS && this.#clock.nowMs() < endMs; round++) {
      for (const step of steps) {
        const trouble = await step.play(signal)
        if (trouble !== undefined) return `${step.name}: ${trouble}`
        if (signal.aborted) return undefined
      }
    }
    return undefined
  }
}

/** A step has failed, otherwise than before. */
export interface WarmUpFailed {
  readonly reason: string
}

const RETRY_MS = 500
const ROUNDS = 80
const WARM_MS = 700
