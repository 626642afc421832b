import type { Bench } from '../../support/bench.ts'
import { created, same } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshKey, orderBytes, sampleOrder } from '../../support/samples.ts'
import { until } from '../../support/until.ts'

/** A client that hangs up gets nothing written, is counted as 499, and its order is not made. */
export async function hangUps({ trial, api, pricing, server, admin }: Bench): Promise<void> {
  const aborts = async () => {
    const metrics = await Metrics.read(admin)
    return metrics.sum('punctual_requests_total', { status: '499', outcome: 'client_abort' })
  }

  for (const how of ['fin', 'rst'] as const) {
    await trial.check(`a client that hangs up (${how}) while its order is priced`, async () => {
      const [key, request, before, calls] = [freshKey(), sampleOrder(), await aborts(), pricing.calls.length]
      pricing.behaviour = { kind: 'hold' }
      const connection = await trial.connect(server.port)
      connection.send(orderBytes(key, JSON.stringify(request)))
      const call = await pricing.called(calls + 1)
      connection.destroy(how)
      await until('the call to pricing to be cancelled', () => call.abandoned)
      await until('the hang-up to be counted', async () => (await aborts()) === before + 1)
      pricing.release()
      created(await api.order(key, request))
      return '499 client_abort'
    })

    await trial.check(`a client that hangs up (${how}) in the middle of its body`, async () => {
      const [key, request, before, calls] = [freshKey(), sampleOrder(), await aborts(), pricing.calls.length]
      const connection = await trial.connect(server.port)
      const bytes = orderBytes(key, JSON.stringify(request))
      connection.send(bytes.subarray(0, -10))
      await until('the request to be seen', async () => {
        const metrics = await Metrics.read(admin)
        return metrics.sum('punctual_admission_in_flight') === 1
      })
      connection.destroy(how)
      await until('the hang-up to be counted', async () => (await aborts()) === before + 1)
      same(pricing.calls.length, calls, 'the calls to pricing')
      created(await api.order(key, request))
      return '499 client_abort'
    })
  }

  await trial.check('hang-ups are no fault of ours, and hold nothing afterwards', async () => {
    const metrics = await Metrics.read(admin)
    same(metrics.sum('punctual_requests_total', { outcome: 'client_abort' }), 4, 'requests abandoned')
    same(metrics.sum('punctual_requests_total', { outcome: 'client_error' }), 0, 'requests refused')
    same(metrics.sum('punctual_requests_total', { outcome: 'rejected' }), 0, 'requests rejected')
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    same(metrics.sum('punctual_admission_in_flight'), 0, 'requests in flight')
    return '4'
  })
}
