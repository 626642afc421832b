import { HAProxy } from '../support/haproxy.ts'
import { OpenLoad } from '../support/open-load.ts'
import type { Json } from '../support/server.ts'
import type { Scenario, Trial } from '../support/trial.ts'
import { passed } from '../support/until.ts'
import { CALLER_ENTRIES, callersOf, post } from './rollover/callers.ts'
import { Instance } from './rollover/instance.ts'
import { kept, smooth } from './rollover/judgement.ts'

const RATE_PER_SECOND = 250
const ROUNDS = 3
const SETTLE_MS = 500

/**
 * Ten times the budgets and the permits of the defaults: on a shared machine a pause must not look like a restart.
 * All that belongs to coming and going stays as it is by default, and the balancer's recipe as it stands.
 */
const CONFIG: Json = {
  auth: { keys: CALLER_ENTRIES },
  capacity: { maxConcurrent: 600 },
  deadline: { requestBudgetMs: 2_000 },
  outbound: { leaseMs: 1_500, totalMs: 1_100, attemptMs: 400 },
  cache: { waitTimeoutMs: 1_000, loadTimeoutMs: 900, queryTimeoutMs: 750 },
}

/**
 * Two instances behind HAProxy, each restarted three times under load: nobody who follows the balancer notices, and
 * nothing that was acknowledged is lost.
 */
export const rollover: Scenario = {
  name: 'rollover',
  limitMs: 60_000,
  async play(trial) {
    if (HAProxy.installed) return rolled(trial)
    trial.skip(
      'a rolling restart behind HAProxy',
      'haproxy is not installed (Debian: apt-get install haproxy)',
    )
  },
}

async function rolled(trial: Trial): Promise<void> {
  const instances = [
    await Instance.start(trial, 'one', CONFIG),
    await Instance.start(trial, 'two', CONFIG),
  ] as const
  const balancer = await HAProxy.start(instances[0].port, instances[1].port)
  trial.own(() => balancer.end())
  const callers = callersOf(trial, balancer.port)

  const load = new OpenLoad(RATE_PER_SECOND, serial => post(callers, serial))
  trial.own(async () => void (await load.stop()))
  await passed(SETTLE_MS)
  for (let round = 1; round <= ROUNDS; round++) {
    for (const instance of instances) {
      await trial.check(`restart ${round} of ${instance.name}: seen in time, exit 0, back`, () =>
        instance.restart(balancer),
      )
      await passed(SETTLE_MS)
    }
  }
  const arrivals = await load.stop()

  await smooth(trial, arrivals, balancer)
  await kept(
    trial,
    arrivals,
    instances.map(({ port }) => callersOf(trial, port)),
  )
}
