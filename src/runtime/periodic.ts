import type { Clock, Timer } from './clock.ts'

/**
 * Periodic: does a step again and again, one at a time. A step that says there is more to do is followed by the next
 * after `pauseMs`, any other after `intervalMs`. Only a fault rejects; it is handed to `onFault`, and the next interval
 * tries again.
 *
 *   resting ──interval or pause──▶ working ──step done──▶ resting
 *   any ──close()──▶ closed, once a step that is under way has ended
 */
export class Periodic {
  readonly #deps: PeriodicDeps
  #timer: Timer | undefined
  #working: Promise<void> | undefined
  #closed = false

  constructor(deps: PeriodicDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#rest(this.#deps.intervalMs)
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#timer !== undefined) this.#deps.clock.clearTimer(this.#timer)
    await this.#working
  }

  #rest(ms: number): void {
    if (this.#closed) return
    this.#timer = this.#deps.clock.setTimer(() => {
      this.#working = this.#work()
    }, ms)
  }

  async #work(): Promise<void> {
    const { step, onFault, intervalMs, pauseMs } = this.#deps
    let more = false
    try {
      more = await step()
    } catch (error) {
      onFault(error)
    }
    this.#rest(more ? pauseMs : intervalMs)
  }
}

export interface PeriodicDeps {
  readonly clock: Clock
  readonly intervalMs: number
  readonly pauseMs: number
  /** Whether there is more to do. */
  readonly step: () => Promise<boolean>
  readonly onFault: (error: unknown) => void
}
