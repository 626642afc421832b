import { Problem } from '../errors/index.ts'
import type { Clock } from '../runtime/index.ts'
import type { DeadEvent, Outbox } from '../store/index.ts'

/** What operators do about events that were given up on. Throws `store-unavailable`. */
export class DeadLetters {
  readonly #outbox: Outbox
  readonly #clock: Clock
  readonly #wake: () => void

  constructor(outbox: Outbox, clock: Clock, wake: () => void) {
    this.#outbox = outbox
    this.#clock = clock
    this.#wake = wake
  }

  async list(page: { readonly limit: number; readonly after: number }): Promise<readonly DeadEvent[]> {
    const found = await this.#outbox.findDead(page, AbortSignal.timeout(LIMIT_MS))
    if (found.kind !== 'found') throw new Problem('store-unavailable')
    return found.value
  }

  /** How many are due again. */
  async redrive(ids: readonly string[] | 'all'): Promise<number> {
    const count = await this.#outbox.redrive(ids, this.#clock.wallMs())
    if (count === undefined) throw new Problem('store-unavailable')
    this.#wake()
    return count
  }
}

const LIMIT_MS = 5_000
