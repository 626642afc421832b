import type { Bench } from './bench.ts'
import { same } from './expect.ts'
import { Metrics } from './metrics.ts'
import { until } from './until.ts'

/**
 * The ledger, once a server is idle: every attempt that its pricing saw ended in exactly one result, nothing is in
 * flight, and nothing came out of control. Only for benches whose every attempt reaches pricing.
 */
export async function accounted({ trial, pricing, admin }: Bench, after: string): Promise<void> {
  await trial.check(`after ${after} every attempt has one result, and nothing is in flight`, async () => {
    await until('an idle server', async () => {
      return (await Metrics.read(admin)).sum('punctual_admission_in_flight') === 0
    })
    const metrics = await Metrics.read(admin)
    same(metrics.sum('punctual_outbound_attempts_total'), pricing.calls.length, 'the attempts')
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    return `${pricing.calls.length} attempts`
  })
}
