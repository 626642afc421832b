/**
 * Clock: every moment and every timer in Punctual comes from here, so that anything with time in it can run
 * under a virtual clock. `nowMs` is monotonic and knows nothing of the wall; `wallMs` is for what people
 * read (`createdAt`), and for what must outlive a process: leases on events, due times, retention.
 */
export interface Clock {
  /** Monotonic milliseconds since an arbitrary moment, with a fraction. */
  nowMs(): number
  /** Milliseconds since the Unix epoch; may jump. */
  wallMs(): number
  /** Runs `fire` once, `delayMs` from now or later. */
  setTimer(fire: () => void, delayMs: number): Timer
  clearTimer(timer: Timer): void
  /** Runs `fire` once the events that were ready at this moment have been handled. */
  afterPoll(fire: () => void): void
}

/** A handle that only its clock understands. */
export type Timer = object

/** The clock of the process. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer: (fire, delayMs) => setTimeout(fire, delayMs),
  clearTimer: timer => clearTimeout(timer as NodeJS.Timeout),
  afterPoll: fire => void setImmediate(fire),
}
