import type { Clock, Timer } from '../../src/runtime/index.ts'

interface Entry {
  readonly fire: () => void
  readonly momentMs: number
}

/**
 * A clock that moves only when told. It keeps the habits of a real event loop that code may fall over:
 *
 *   one turn:  timers that are due, in order of their moments ──▶ poll (I/O) ──▶ afterPoll callbacks
 *
 * - a timer set inside a turn's timers, even with no delay, waits for a later turn;
 * - an afterPoll callback made by an afterPoll callback waits for the next turn;
 * - delays are whole milliseconds, at least one, and a timer may fire up to 2 ms early (`earlyMs`);
 * - while the loop is blocked time passes and nothing runs.
 */
export class VirtualClock implements Clock {
  #nowMs: number
  #wallOffsetMs: number
  #timers = new Set<Entry>()
  #afterPoll: (() => void)[] = []
  readonly #earlyMs: () => number

  /** `earlyMs` is asked once for each timer, for a number from 0 up to 2. */
  constructor({
    startMs = 1_000,
    wallMs = Date.UTC(2026, 0, 1),
    earlyMs = () => 0,
  }: VirtualClockOptions = {}) {
    this.#nowMs = startMs
    this.#wallOffsetMs = wallMs - startMs
    this.#earlyMs = earlyMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs
  }

  /** The wall jumps; the monotonic clock does not notice. */
  setWallMs(wallMs: number): void {
    this.#wallOffsetMs = wallMs - this.#nowMs
  }

  setTimer(fire: () => void, delayMs: number): Timer {
    const wholeMs = Math.max(1, Math.trunc(delayMs))
    const timer: Entry = { fire, momentMs: this.#nowMs + wholeMs - this.#earlyMs() }
    this.#timers.add(timer)
    return timer
  }

  clearTimer(timer: Timer): void {
    this.#timers.delete(timer as Entry)
  }

  afterPoll(fire: () => void): void {
    this.#afterPoll.push(fire)
  }

  get pendingTimers(): number {
    return this.#timers.size
  }

  /** How long the loop may sleep in its poll: until the next timer, not at all while an afterPoll waits. */
  get pollTimeoutMs(): number {
    if (this.#afterPoll.length > 0) return 0
    const moments = [...this.#timers].map(timer => timer.momentMs)
    return Math.max(0, Math.min(...moments) - this.#nowMs)
  }

  /** Time passes on a loop that keeps up: each timer fires at its moment. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms
    while (this.#step(endMs)) this.turn()
  }

  /** As `advance`, and lets promises go on before each step and at the end. */
  async advanceAsync(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    await promisesSettled()
    while (this.#step(endMs)) {
      this.turn()
      await promisesSettled()
    }
  }

  /** Time passes while the loop is busy or the process is stopped; whatever falls due waits for a turn. */
  block(ms: number): void {
    this.#nowMs += ms
  }

  /** One turn of the loop, with `poll` in the place of the I/O that is ready. */
  turn(poll: () => void = () => {}): void {
    for (const timer of this.#due(this.#nowMs)) {
      // Cleared by one that fired before it.
      if (this.#timers.delete(timer)) timer.fire()
    }
    poll()
    const ready = this.#afterPoll
    this.#afterPoll = []
    for (const fire of ready) fire()
  }

  /** Goes to the next moment at which something runs, or to the end; false when nothing is left to run. */
  #step(endMs: number): boolean {
    if (this.#afterPoll.length > 0) return true
    const [next] = this.#due(endMs)
    this.#nowMs = Math.max(this.#nowMs, next?.momentMs ?? endMs)
    return next !== undefined
  }

  #due(untilMs: number): Entry[] {
    return [...this.#timers]
      .filter(timer => timer.momentMs <= untilMs)
      .sort((one, other) => one.momentMs - other.momentMs)
  }
}

export interface VirtualClockOptions {
  readonly startMs?: number
  readonly wallMs?: number
  readonly earlyMs?: () => number
}

/** Resolves once every promise reaction that can run has run: a real turn of the loop, without a wait. */
export function promisesSettled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
