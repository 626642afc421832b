import { openBench, WIDE_BUDGETS } from '../support/bench.ts'
import type { Scenario } from '../support/trial.ts'
import { fullHouse } from './concurrency/full-house.ts'
import { oneKey, slowStorms, storm } from './concurrency/storms.ts'

/** More at once than there is room for: some are served, the rest are told, and nobody meets a fault. */
export const concurrency: Scenario = {
  name: 'concurrency',
  limitMs: 60_000,
  async play(trial) {
    await storm(await openBench(trial))
    await oneKey(await openBench(trial))
    await slowStorms(await openBench(trial))
    await fullHouse(await openBench(trial, WIDE_BUDGETS))
  },
}
