import type { Clock } from '../runtime/index.ts'

/**
 * Listen queue: since when may a new connection have been waiting to be accepted? After a stall the kernel holds
 * connections that came during it; the loop takes out one a turn and reads it a poll later, when the beat has
 * long moved on (measured: loop blocked for 400 ms, 150 new connections had waited up to 392 ms and looked fresh).
 *
 *   calm ──stalled(since)──▶ suspect(since)     what is accepted now may have waited since then
 *   suspect ──a poll that accepted nobody──▶ calm         the queue was empty
 *   suspect ──511 accepted──▶ calm                        it held no more than that (net.Server's backlog)
 *
 * Two waits are not seen: up to one beat before the stall (15 ms at most), and that of connections which queue
 * behind handlers none of which alone is a stall; suspecting those as well charged requests that had not waited
 * by up to 400 ms.
 *
 * A connection that joined the queue after the stall is charged as well: the bound stays a bound, and errs towards
 * a 504 that says nothing was done.
 */
export class ListenQueue {
  #suspect: { readonly sinceMs: number; accepted: number; quiet: boolean } | undefined
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  stalled(sinceMs: number): void {
    if (this.#suspect) {
      // The queue may have filled up anew.
      this.#suspect.accepted = 0
      return
    }
    this.#suspect = { sinceMs, accepted: 0, quiet: true }
    this.#clock.afterPoll(() => this.#afterPoll())
  }

  /**
   * For each new connection. Undefined when it cannot have waited; else tells, up to the poll that reads its first
   * bytes, since when it may have.
   */
  accepted(): (() => number | undefined) | undefined {
    const suspect = this.#suspect
    if (suspect === undefined) return undefined
    suspect.quiet = false
    if (++suspect.accepted >= LISTEN_QUEUE) this.#suspect = undefined
    let sinceMs: number | undefined = suspect.sinceMs
    this.#clock.afterPoll(() =>
      this.#clock.afterPoll(() => {
        sinceMs = undefined
      }),
    )
    return () => sinceMs
  }

  #afterPoll(): void {
    if (this.#suspect === undefined) return
    if (this.#suspect.quiet) {
      this.#suspect = undefined
      return
    }
    this.#suspect.quiet = true
    this.#clock.afterPoll(() => this.#afterPoll())
  }
}

const LISTEN_QUEUE = 511
