import { openBench, WIDE_BUDGETS } from '../support/bench.ts'
import { same, status } from '../support/expect.ts'
import { Metrics } from '../support/metrics.ts'
import type { Scenario } from '../support/trial.ts'
import { bodies } from './hostile/bodies.ts'
import { greedy } from './hostile/greedy.ts'
import { wire } from './hostile/wire.ts'

/** What only a broken or an ill-meaning client sends: each ends in its 4xx, quickly, and leaves nothing behind. */
export const hostile: Scenario = {
  name: 'hostile',
  limitMs: 180_000,
  async play(trial) {
    // Wide, so that a refusal which is quick is quick of its own and not because a budget ended it.
    const bench = await openBench(trial, WIDE_BUDGETS)
    await bodies(bench)
    await wire(bench)
    await greedy(bench)

    await trial.check('after all that the server is well, and none of it was its own fault', async () => {
      status(await bench.nobody.get('/health/ready'), 200)
      const metrics = await Metrics.read(bench.admin)
      same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
      same(metrics.sum('punctual_admission_in_flight'), 0, 'requests in flight')
    })
  },
}
