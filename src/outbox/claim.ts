import type { OutboxEvent, SettleException } from '../store/index.ts'

/**
 * Claim: what the relay holds under one token, and what has become of it. What is through is let go of event by event,
 * since one that hangs keeps its claim for long.
 *
 *   event:  held ──deliver()──▶ delivered
 *           held ──except()──▶ excepted        failed, parked, or handed back
 *   claim:  open ──end()──▶ over               its signal aborts; what is still held is handed back as it is reached
 *           open, over ──no event held──▶ finished
 */
export class Claim {
  readonly token: number
  readonly size: number
  delivered = 0
  /** Why the first that failed did. */
  failure: string | undefined
  readonly exceptions: SettleException[] = []
  readonly #held: Set<number>
  #settledInPart = 0
  readonly #controller = new AbortController()

  constructor(token: number, events: readonly OutboxEvent[]) {
    this.token = token
    this.size = events.length
    this.#held = new Set(events.map(({ sequence }) => sequence))
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get over(): boolean {
    return this.#controller.signal.aborted
  }

  get finished(): boolean {
    return this.#held.size === 0
  }

  /**
   * Events that it takes room for. Those that are through count again once all are, until the claim is settled: a store
   * that gives out claims and settles none must not be asked for ever more.
   */
  get room(): number {
    return this.#held.size || this.size
  }

  /** What it would go on with, if what has come through since it was last settled in part were settled now. */
  part(): { readonly keeps: readonly number[]; readonly settled: () => void } | undefined {
    const through = this.size - this.#held.size
    if (this.finished || through === this.#settledInPart) return undefined
    const settled = () => {
      this.#settledInPart = through
    }
    return { keeps: [...this.#held], settled }
  }

  /** Nothing of it may begin any more, and what has begun should stop. */
  end(): void {
    this.#controller.abort()
  }

  deliver({ sequence }: OutboxEvent): void {
    this.#held.delete(sequence)
    this.delivered++
  }

  except({ sequence }: OutboxEvent, exception: Omit<SettleException, 'sequence'>): void {
    this.#held.delete(sequence)
    this.exceptions.push({ sequence, ...exception })
  }
}

/** Events of one order out of one claim, in the order of their making. */
export interface Lane {
  readonly claim: Claim
  readonly events: readonly OutboxEvent[]
}
