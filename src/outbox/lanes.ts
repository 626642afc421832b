import type { Lane } from './claim.ts'

/**
 * Lanes: whose turn is it? Each lane holds the events of one order out of one claim, and has one place while it runs.
 * Lanes whose first event has failed before have half of the places at most: what hangs again and again, for as long as
 * a time-out each time, leaves room for what is new.
 */
export class Lanes {
  readonly #places: number
  #running = 0
  #runningAgain = 0
  /** Those that have not begun, the oldest first. */
  #fresh: Lane[] = []
  #again: Lane[] = []

  constructor(places: number) {
    this.#places = places
  }

  add(lane: Lane): void {
    ;(isAgain(lane) ? this.#again : this.#fresh).push(lane)
  }

  /** The next that may begin; it runs until it is `done`. */
  next(): Lane | undefined {
    if (this.#running >= this.#places) return undefined
    const mayTryAgain = this.#runningAgain < Math.ceil(this.#places / 2)
    const lane = (mayTryAgain ? this.#again.shift() : undefined) ?? this.#fresh.shift()
    if (lane === undefined) return undefined
    this.#running++
    if (isAgain(lane)) this.#runningAgain++
    return lane
  }

  done(lane: Lane): void {
    this.#running--
    if (isAgain(lane)) this.#runningAgain--
  }

  /** Takes out what has not begun: all, or of one claim, or of that only what has failed before. */
  take(claim?: Lane['claim'], only?: 'again'): readonly Lane[] {
    const taken: Lane[] = []
    const split = (lanes: Lane[]) =>
      lanes.filter(lane => {
        const leaves = claim === undefined || lane.claim === claim
        if (leaves) taken.push(lane)
        return !leaves
      })
    this.#again = split(this.#again)
    if (only === undefined) this.#fresh = split(this.#fresh)
    return taken
  }
}

function isAgain({ events: [first] }: Lane): boolean {
  return first !== undefined && first.attempts > 0
}
