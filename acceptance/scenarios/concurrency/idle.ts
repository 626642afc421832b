import type { Client } from '../../support/client.ts'
import { Metrics } from '../../support/metrics.ts'
import { until } from '../../support/until.ts'

/** The metrics once no request is in flight. */
export function idle(admin: Client): Promise<Metrics> {
  return until('nothing to be in flight', async () => {
    const metrics = await Metrics.read(admin)
    return metrics.sum('punctual_admission_in_flight') === 0 && metrics
  })
}
