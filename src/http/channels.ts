import { Channel } from '../runtime/index.ts'

export type Outcome = 'success' | 'client_error' | 'rejected' | 'uncontrolled' | 'client_abort'

/** A request is over, for better or worse. */
export interface RequestEnded {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly outcome: Outcome
  /** Undefined when it was turned away: that takes no time worth measuring, and there may be many. */
  readonly durationMs: number | undefined
  readonly traceId: string
  readonly code: string | undefined
  /** Where the budget ran out. */
  readonly stage: string | undefined
  readonly tenant: string | undefined
}

export interface HttpChannels {
  readonly ended: Channel<RequestEnded>
  /** A fault of ours was answered with 500. */
  readonly fault: Channel<{ error: unknown; traceId: string }>
}

export function httpChannels(): HttpChannels {
  return { ended: new Channel(), fault: new Channel() }
}

/** How a status counts: only 500 is out of control; 429, 503 and 504 are refusals made on purpose. */
export function outcomeOf(status: number): Outcome {
  if (status < 400) return 'success'
  if (status === 499) return 'client_abort'
  if (status === 429 || status === 503 || status === 504) return 'rejected'
  return status < 500 ? 'client_error' : 'uncontrolled'
}
