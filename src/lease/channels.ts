import { Channel } from '../runtime/index.ts'

/** What leases and settlements report. */
export interface LeaseChannels {
  /** An outcome came after another had won; it was not written. */
  readonly late: Channel<{ kind: string }>
  /** A request had waited this long, unseen, before the loop reached it. */
  readonly hiddenWait: Channel<{ waitMs: number }>
  /** One beat of the loop clock and how late it was. */
  readonly loopLag: Channel<{ lagMs: number }>
}

export function leaseChannels(): LeaseChannels {
  return { late: new Channel(), hiddenWait: new Channel(), loopLag: new Channel() }
}
