import { Channel } from '../runtime/index.ts'
import type { PhaseEnded } from './lifecycle.ts'

export interface LifecycleChannels {
  readonly phase: Channel<PhaseEnded>
  /** The drain is over; `dropped` requests had to be cut off. */
  readonly drained: Channel<{ dropped: number }>
}

export function lifecycleChannels(): LifecycleChannels {
  return { phase: new Channel(), drained: new Channel() }
}
