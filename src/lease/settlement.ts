import type { Channel } from '../runtime/index.ts'

/**
 * Settlement: many ends compete, one wins.
 *
 *   pending ──settle(kind)──▶ settled(kind)        the first caller gets true
 *   settled ──settle(kind)──▶ settled              every later caller gets false and is counted as late
 *
 * There is no way back and no third state. Whoever gets true owes the effect (writing the response, resolving
 * the attempt); whoever gets false must do nothing.
 */
export class Settlement<Kind extends string> {
  #winner: Kind | undefined
  readonly #late: Channel<{ kind: string }>

  constructor(late: Channel<{ kind: string }>) {
    this.#late = late
  }

  /** The kind that won, or undefined while pending. */
  get winner(): Kind | undefined {
    return this.#winner
  }

  settle(kind: Kind): boolean {
    if (this.#winner === undefined) {
      this.#winner = kind
      return true
    }
    this.#late.publish({ kind })
    return false
  }
}
