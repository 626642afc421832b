import { Channel } from '../runtime/index.ts'
import type { BreakerState } from './breaker.ts'
import type { AttemptResult, CallResult } from './call.ts'

export interface OutboundChannels {
  /** An attempt was settled. */
  readonly attempt: Channel<{ result: AttemptResult }>
  /** An attempt follows a failed one. */
  readonly retry: Channel<Record<string, never>>
  /** A call left the chain. */
  readonly call: Channel<{ result: CallResult }>
  readonly breaker: Channel<{ state: BreakerState }>
  /** An attempt's outcome came after another had won. */
  readonly late: Channel<{ kind: string }>
}

export function outboundChannels(): OutboundChannels {
  return {
    attempt: new Channel(),
    retry: new Channel(),
    call: new Channel(),
    breaker: new Channel(),
    late: new Channel(),
  }
}
