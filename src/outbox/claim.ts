import type { OutboxEvent, SettleException } from '../store/index.ts'

/**
 * Claim: how many events the relay holds under one token, and what has become of them. The events themselves are let
 * go of one by one, since one that hangs keeps its claim for long.
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
  readonly #controller = new AbortController()

  constructor(token: number, size: number) {
    this.token = token
    this.size = size
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get over(): boolean {
    return this.#controller.signal.aborted
  }

  get finished(): boolean {
    return this.#open === 0
  }

  /**
   * Events that it takes room for. Those that are through count again once all are, until the claim is settled: a store
   * that gives out claims and settles none must not be asked for ever more.
   */
  get held(): number {
    return this.#open || this.size
  }

  get #open(): number {
    return this.size - this.delivered - this.exceptions.length
  }

  /** Nothing of it may begin any more, and what has begun should stop. */
  end(): void {
    this.#controller.abort()
  }

  deliver(): void {
    this.delivered++
  }

  except(event: OutboxEvent, exception: Omit<SettleException, 'sequence'>): void {
    this.exceptions.push({ sequence: event.sequence, ...exception })
  }
}

/** Events of one order out of one claim, in the order of their making. */
export interface Lane {
  readonly claim: Claim
  readonly events: readonly OutboxEvent[]
}
