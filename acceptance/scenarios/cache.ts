import { openBench } from '../support/bench.ts'
import type { Scenario } from '../support/trial.ts'
import { absences } from './cache/absences.ts'
import { LASTING, TIGHT } from './cache/configurations.ts'
import { heldLoads } from './cache/held-loads.ts'
import { hotKeys } from './cache/hot-keys.ts'
import { limits } from './cache/limits.ts'
import { operator } from './cache/operator.ts'
import { prices } from './cache/prices.ts'
import { storms } from './cache/storms.ts'
import { views } from './cache/views.ts'
import { writers } from './cache/writers.ts'

/** What is read again costs little, and is never older than what was acknowledged before. */
export const cache: Scenario = {
  name: 'cache',
  limitMs: 90_000,
  async play(trial) {
    await storms(trial)
    await writers(await openBench(trial, LASTING))
    await heldLoads(await openBench(trial, LASTING))
    const bench = await openBench(trial, LASTING)
    for (const theme of [absences, views, operator]) await theme(bench)
    await prices(trial)
    await limits(await openBench(trial, TIGHT))
    await hotKeys(trial)
  },
}
