import { openBench, WIDE_BUDGETS } from '../support/bench.ts'
import type { Scenario } from '../support/trial.ts'
import { access } from './contract/access.ts'
import { cancelling } from './contract/cancelling.ts'
import { creating } from './contract/creating.ts'
import { keys } from './contract/keys.ts'
import { listing } from './contract/listing.ts'
import { paths } from './contract/paths.ts'
import { queries } from './contract/queries.ts'
import { reading } from './contract/reading.ts'
import { replaying } from './contract/replaying.ts'
import { soundness } from './contract/soundness.ts'
import { uncancelled } from './contract/uncancelled.ts'
import { values } from './contract/values.ts'

/** Every row of the status table that a well-meaning client can meet, theme by theme. */
export const contract: Scenario = {
  name: 'contract',
  limitMs: 120_000,
  async play(trial) {
    // Nothing here is about time, and a pause of the machine must not turn a 201 into a 504.
    const bench = await openBench(trial, WIDE_BUDGETS)
    for (const theme of [creating, replaying, keys, values, reading, access, paths]) await theme(bench)
    for (const theme of [listing, queries, cancelling, uncancelled]) await theme(bench)
    await soundness(bench)
  },
}
