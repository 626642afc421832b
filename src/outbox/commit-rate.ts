import type { Clock } from '../runtime/index.ts'

/**
 * Commit rate: orders per second over the last 100 to 200 ms. What is in progress at this moment would tell less: the
 * relay is woken by commits, when the orders of a group have just been answered.
 */
export class CommitRate {
  #bucket = 0
  #current = 0
  #previous = 0
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
    this.#bucket = this.#now()
  }

  committed(orders: number): void {
    this.#turn()
    this.#current += orders
  }

  perSecond(): number {
    this.#turn()
    const windowMs = BUCKET_MS + (this.#clock.nowMs() - this.#bucket * BUCKET_MS)
    return ((this.#current + this.#previous) * 1000) / windowMs
  }

  #now(): number {
    return Math.floor(this.#clock.nowMs() / BUCKET_MS)
  }

  #turn(): void {
    const bucket = this.#now()
    if (bucket === this.#bucket) return
    this.#previous = bucket === this.#bucket + 1 ? this.#current : 0
    this.#current = 0
    this.#bucket = bucket
  }
}

const BUCKET_MS = 100
