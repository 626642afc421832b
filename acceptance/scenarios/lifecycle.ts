import type { Scenario } from '../support/trial.ts'
import { configuration } from './lifecycle/configuration.ts'
import { drain } from './lifecycle/drain.ts'
import { faults } from './lifecycle/faults.ts'
import { footing } from './lifecycle/footing.ts'
import { leaving } from './lifecycle/leaving.ts'
import { npmStart } from './lifecycle/npm-start.ts'
import { warmUp } from './lifecycle/warm-up.ts'

/** How the process comes and goes: it refuses to start on a bad footing, and it leaves nobody unanswered. */
export const lifecycle: Scenario = {
  name: 'lifecycle',
  limitMs: 120_000,
  async play(trial) {
    await configuration(trial)
    await footing(trial)
    await warmUp(trial)
    await drain(trial)
    await leaving(trial)
    await faults(trial)
    await npmStart(trial)
  },
}
