import { Channel } from '../runtime/index.ts'
import type { PhaseEnded } from './lifecycle.ts'
import type { WarmUpFailed } from './warm-up.ts'

export interface LifecycleChannels {
  readonly phase: Channel<PhaseEnded>
  readonly warmUpFailed: Channel<WarmUpFailed>
  /** The drain is over; `dropped` requests had to be cut off. */
  readonly drained: Channel<{ dropped: number }>
}

export function lifecycleChannels(): LifecycleChannels {
  return { phase: new Channel(), warmUpFailed: new Channel(), drained: new Channel() }
}
