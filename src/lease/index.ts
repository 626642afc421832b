export { type LeaseChannels, leaseChannels } from './channels.ts'
export { Lease, LeaseEnd, type LeaseState, type Stage } from './lease.ts'
export { LoopClock } from './loop-clock.ts'
export { Settlement } from './settlement.ts'
