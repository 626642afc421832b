import { openBench, WIDE_BUDGETS } from '../support/bench.ts'
import type { Scenario } from '../support/trial.ts'
import { deadlines } from './budget/deadlines.ts'
import { hangUps } from './budget/hang-ups.ts'
import { lockedStore } from './budget/locked-store.ts'

/** Every request ends inside its budget, whoever it is that makes it wait, and says truly what became of it. */
export const budget: Scenario = {
  name: 'budget',
  limitMs: 60_000,
  async play(trial) {
    // A server for each theme: one must not find the breaker in the state in which another left it.
    await deadlines(await openBench(trial))
    await hangUps(await openBench(trial, WIDE_BUDGETS))
    await lockedStore(await openBench(trial))
  },
}
