import { type Clock, Periodic } from '../runtime/index.ts'
import type { PurgeAsk, Purged } from './port.ts'

/**
 * Sweep: deletes what has outlived its retention, from the oldest on, step by step. A pass ends where the rest is too
 * young or the store unavailable; the next one begins at the oldest again, after `intervalMs`.
 */
export class Sweep {
  #after = 0
  readonly #spec: SweepSpec
  readonly #steps: Periodic

  constructor(spec: SweepSpec) {
    this.#spec = spec
    this.#steps = new Periodic({ ...spec, pauseMs: PAUSE_MS, step: () => this.#step() })
  }

  start(): void {
    this.#steps.start()
  }

  close(): Promise<void> {
    return this.#steps.close()
  }

  /** Whether the pass goes on. */
  async #step(): Promise<boolean> {
    const { clock, purge, retentionMs, limit } = this.#spec
    const atMs = clock.wallMs()
    const purged = await purge({ atMs, madeBeforeMs: atMs - retentionMs, limit, after: this.#after })
    this.#after = purged?.next ?? 0
    return purged?.next !== undefined
  }
}

export interface SweepSpec {
  readonly clock: Clock
  readonly purge: (ask: PurgeAsk) => Promise<Purged | undefined>
  readonly retentionMs: number
  /** Rows that one step looks at. */
  readonly limit: number
  readonly intervalMs: number
  readonly onFault: (error: unknown) => void
}

// Some ten steps for each commit of a busy second, so that orders see little of it.
const PAUSE_MS = 20
