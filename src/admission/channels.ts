import { Channel } from '../runtime/index.ts'

export interface AdmissionChannels {
  readonly rejected: Channel<{ scope: 'global' }>
}

export function admissionChannels(): AdmissionChannels {
  return { rejected: new Channel() }
}
