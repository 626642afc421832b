import type { PurgeAsk, Purged } from './port.ts'

/**
 * Sweep: deletes what has outlived its retention, from the oldest on, step by step. A pass ends where the rest is too
 * young or the store unavailable; the next one begins at the oldest again.
 */
export class Sweep {
  #after = 0
  readonly #purge: (ask: PurgeAsk) => Promise<Purged | undefined>
  readonly #retentionMs: number
  readonly #limit: number

  constructor(purge: (ask: PurgeAsk) => Promise<Purged | undefined>, retentionMs: number, limit: number) {
    this.#purge = purge
    this.#retentionMs = retentionMs
    this.#limit = limit
  }

  /** Whether the pass goes on. */
  async step(atMs: number): Promise<boolean> {
    const ask = { atMs, madeBeforeMs: atMs - this.#retentionMs, limit: this.#limit, after: this.#after }
    const next = (await this.#purge(ask))?.next
    this.#after = next ?? 0
    return next !== undefined
  }
}
