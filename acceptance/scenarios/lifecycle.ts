import type { Scenario } from '../support/trial.ts'
import { drain } from './lifecycle/drain.ts'
import { refusals } from './lifecycle/refusals.ts'

/** How the process comes and goes: it refuses to start on a bad footing, and it leaves nobody unanswered. */
export const lifecycle: Scenario = {
  name: 'lifecycle',
  limitMs: 120_000,
  async play(trial) {
    await refusals(trial)
    await drain(trial)
  },
}
