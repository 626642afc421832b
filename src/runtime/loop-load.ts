import { performance } from 'node:perf_hooks'
import type { Clock } from './clock.ts'

/**
 * Loop load: the share of the last 100 to 200 ms in which the event loop was not waiting for anything to happen. Asked
 * for the first time in that long, it says 0.
 */
export class LoopLoad {
  readonly #clock: Clock
  readonly #read: ReadLoop
  #current: Mark
  #previous: Mark

  constructor(clock: Clock, read: ReadLoop = performance.eventLoopUtilization) {
    this.#clock = clock
    this.#read = read
    this.#current = this.#previous = this.#mark()
  }

  /** From 0, idle, to 1. */
  share(): number {
    const ageMs = this.#clock.nowMs() - this.#current.atMs
    if (ageMs >= WINDOW_MS) {
      const mark = this.#mark()
      // Nobody has asked for long: what was before tells nothing of now.
      this.#previous = ageMs >= 2 * WINDOW_MS ? mark : this.#current
      this.#current = mark
    }
    const { idle, active } = this.#read()
    const before = this.#previous.at
    const activeMs = active - before.active
    const allMs = activeMs + idle - before.idle
    return allMs > 0 ? activeMs / allMs : 0
  }

  #mark(): Mark {
    return { atMs: this.#clock.nowMs(), at: this.#read() }
  }
}

/** Milliseconds since the start. */
export type ReadLoop = () => { readonly idle: number; readonly active: number }

interface Mark {
  readonly atMs: number
  readonly at: ReturnType<ReadLoop>
}

const WINDOW_MS = 100
