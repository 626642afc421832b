export { type LifecycleChannels, lifecycleChannels } from './channels.ts'
export { type Drainable, drain } from './drain.ts'
export { Lifecycle, type Phase, type Probe } from './lifecycle.ts'
export { type Step, WarmUp } from './warm-up.ts'
