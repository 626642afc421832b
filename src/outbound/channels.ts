import { Channel } from '../runtime/index.ts'
import type { BreakerState } from './breaker.ts'
import type { AttemptResult, CallResult } from './call.ts'

export interface OutboundChannels {
  /** An attempt was begun; every one ends with exactly one message on `attempt`. */
  readonly launched: Channel<Record<string, never>>
  /** An attempt was settled. */
  readonly attempt: Channel<{ result: AttemptResult }>
  /** An attempt follows a failed one. */
  readonly retry: Channel<Record<string, never>>
  /** A second attempt was decided on and ended, or was wanted and not allowed. */
  readonly hedge: Channel<{ result: 'won' | 'lost' | 'shed' }>
  /** One request to pricing, for so many SKUs. */
  readonly batch: Channel<{ size: number }>
  /** Remembered prices were served. */
  readonly fallback: Channel<Record<string, never>>
  /** A call left the chain. */
  readonly call: Channel<{ result: CallResult }>
  readonly breaker: Channel<{ state: BreakerState }>
  /** An attempt's outcome came after another had won. */
  readonly late: Channel<{ kind: string }>
}

export function outboundChannels(): OutboundChannels {
  return {
    launched: new Channel(),
    attempt: new Channel(),
    hedge: new Channel(),
    batch: new Channel(),
    fallback: new Channel(),
    retry: new Channel(),
    call: new Channel(),
    breaker: new Channel(),
    late: new Channel(),
  }
}
