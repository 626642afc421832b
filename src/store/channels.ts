import { Channel } from '../runtime/index.ts'

export interface StoreChannels {
  /** A transaction ended: how many writes it took and how long, from sending to verdict. */
  readonly committed: Channel<{ durationMs: number; batchSize: number }>
  /** A verdict came after its caller had stopped waiting. */
  readonly late: Channel<{ kind: string }>
  /** The store stopped or began again to work normally. */
  readonly health: Channel<{ degraded: string | undefined }>
  /** Something failed inside, once for each run of the same. For the operator's log only: may hold SQL or a path. */
  readonly trouble: Channel<{ reason: string }>
}

export function storeChannels(): StoreChannels {
  return { committed: new Channel(), late: new Channel(), health: new Channel(), trouble: new Channel() }
}
