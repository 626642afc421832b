import type { Clock, Timer } from '../runtime/index.ts'

/**
 * Rest: one timer until the next claim. Whoever asks for rest can only make it shorter; what puts it off makes it last
 * until then, whoever asks.
 */
export class Rest {
  readonly #clock: Clock
  readonly #onOver: () => void
  #timer: Timer | undefined
  #overAtMs = Number.POSITIVE_INFINITY
  #notBeforeMs = 0

  /** Calls `onOver` each time that a rest is over. */
  constructor(clock: Clock, onOver: () => void) {
    this.#clock = clock
    this.#onOver = onOver
  }

  atMost(ms: number): void {
    const nowMs = this.#clock.nowMs()
    const overAtMs = Math.max(nowMs + ms, this.#notBeforeMs)
    if (overAtMs >= this.#overAtMs) return
    this.end()
    this.#overAtMs = overAtMs
    this.#timer = this.#clock.setTimer(
      () => {
        this.end()
        this.#onOver()
      },
      Math.ceil(overAtMs - nowMs),
    )
  }

  /** Until this moment on the monotonic clock. */
  putOff(untilMs: number): void {
    this.#notBeforeMs = Math.max(this.#notBeforeMs, untilMs)
    if (this.#overAtMs >= this.#notBeforeMs) return
    this.end()
    this.atMost(0)
  }

  end(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer)
    this.#timer = undefined
    this.#overAtMs = Number.POSITIVE_INFINITY
  }
}
