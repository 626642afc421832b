import { performance } from 'node:perf_hooks'
import type { Clock } from './clock.ts'

/**
 * Loop load: the share of the last 100 to 200 ms in which the event loop was not waiting for anything to happen; of the
 * time since it was last asked, where that is longer.
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
    if (this.#clock.nowMs() - this.#current.atMs >= WINDOW_MS) {
      // Of a longer time ago it tells as well: whoever asks seldom gets the share of all the time since.
      this.#previous = this.#current
      this.#current = this.#mark()
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
