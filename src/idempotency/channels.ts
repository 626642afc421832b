import { Channel } from '../runtime/index.ts'

export interface IdempotencyChannels {
  readonly decided: Channel<{ result: 'new' | 'replay' | 'conflict' }>
}

export function idempotencyChannels(): IdempotencyChannels {
  return { decided: new Channel() }
}
