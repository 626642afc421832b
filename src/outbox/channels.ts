import { Channel } from '../runtime/index.ts'

export interface OutboxChannels {
  /** A consumer has taken an event, this long after it was made, on the wall clock. */
  readonly delivered: Channel<{ ageMs: number }>
  /** A delivery failed; the event is due again later. `reason` is ours, never what a consumer said. */
  readonly failed: Channel<{ reason: string }>
  /** An event was given up on. */
  readonly parked: Channel<{ id: string; reason: string; attempts: number }>
  /** The sink began or ceased to fail everything. */
  readonly sink: Channel<{ failing: boolean; reason: string }>
}

export function outboxChannels(): OutboxChannels {
  return { delivered: new Channel(), failed: new Channel(), parked: new Channel(), sink: new Channel() }
}
