/** One arrival: when it was due, and what became of it. */
export interface Arrival<Outcome> {
  readonly outcome: Outcome
  /** From the moment it was due, not from the moment it was sent: a sender that is late hides nothing. */
  readonly latencyMs: number
}

/**
 * OpenLoad: arrivals at random moments (Poisson) of a given mean rate, which wait for nobody's answer, as callers who
 * do not know of each other. `send` gets the number of the arrival and must not reject.
 */
export class OpenLoad<Outcome> {
  readonly #send: (serial: number) => Promise<Outcome>
  readonly #meanGapMs: number
  readonly #pending: Promise<Arrival<Outcome>>[] = []
  #dueMs = performance.now()
  #timer: NodeJS.Timeout | undefined

  constructor(ratePerSecond: number, send: (serial: number) => Promise<Outcome>) {
    this.#send = send
    this.#meanGapMs = 1_000 / ratePerSecond
    this.#advance()
  }

  /** Sends nothing more; gives every arrival once the last of them has its outcome. */
  stop(): Promise<Arrival<Outcome>[]> {
    clearTimeout(this.#timer)
    return Promise.all(this.#pending)
  }

  /** Sends what is due by now, and sleeps until the next one is. */
  #advance(): void {
    while (this.#dueMs <= performance.now()) {
      this.#pending.push(this.#arrive(this.#pending.length, this.#dueMs))
      this.#dueMs -= Math.log(1 - Math.random()) * this.#meanGapMs
    }
    this.#timer = setTimeout(() => this.#advance(), Math.max(0, this.#dueMs - performance.now()))
  }

  async #arrive(serial: number, dueMs: number): Promise<Arrival<Outcome>> {
    const outcome = await this.#send(serial)
    return { outcome, latencyMs: performance.now() - dueMs }
  }
}
