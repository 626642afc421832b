import { tally } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { requestBytes } from '../../support/connection.ts'
import { created, demand, orderOf, pageOf, problem, same } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshCustomer, freshKey, sampleOrder } from '../../support/samples.ts'
import { together } from '../../support/together.ts'
import { until } from '../../support/until.ts'
import { watched } from './activity.ts'
import { invalidate } from './invalidate.ts'

const READERS = 50

/** What is too large is not kept, and what is too much at once is refused. */
export async function limits({ trial, api, admin, server }: Bench): Promise<void> {
  await trial.check(
    'a list too large to be kept is answered all the same, and loaded each time',
    async () => {
      const customerId = freshCustomer()
      const ask = async (orders: number) =>
        same(pageOf(await api.list({ customerId })).orders.length, orders, 'the orders')
      created(await api.order(freshKey(), sampleOrder({ customerId })))
      await ask(1)
      const [, small] = await watched(admin, () => ask(1))
      same(small.loads, 0, 'the loads of a small list')
      for (let count = 2; count <= 6; count++)
        created(await api.order(freshKey(), sampleOrder({ customerId })))
      await ask(6)
      const [, large] = await watched(admin, () => ask(6))
      same(large.loads, 1, 'the loads of a large list')
    },
  )

  await trial.check(
    `${READERS} at once read as many different orders, more than may be loaded: the rest is told, nobody waits`,
    async () => {
      const ids: string[] = []
      while (ids.length < READERS) ids.push(created(await api.order(freshKey(), sampleOrder())).id)
      const bytes = (id: string) =>
        requestBytes('GET', `/v1/orders/${id}`, { authorization: `Bearer ${KEYS.full}` })
      const seen: string[] = []
      // A load may be over before the next reader comes; hardly before all of them do.
      const [told, activity] = await watched(admin, () =>
        until('a storm of which some are refused', async () => {
          await invalidate(admin, ...ids.map(id => `order:${id}`))
          const answers = await together(trial, server.port, ids.map(bytes))
          for (const answer of answers) {
            if (answer.status === 503) problem(answer, 503, 'store-unavailable')
            else orderOf(answer)
          }
          seen.push(tally(answers))
          const told = ids.filter((_, index) => answers[index]?.status === 503)
          return told.length > 0 && told
        }),
      )
      same(activity.troubles, told.length, 'the loads that brought nothing')
      // A refusal is no answer that anyone remembers.
      for (const id of told) orderOf(await api.get(`/v1/orders/${id}`))
      return seen.join('; then ')
    },
  )

  await trial.check('after all that no load is under way, and none of it was an error of ours', async () => {
    const metrics = await Metrics.read(admin)
    same(metrics.sum('punctual_cache_in_flight'), 0, 'punctual_cache_in_flight')
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    demand(metrics.sum('punctual_cache_loads_total', { result: 'ok' }) > 0, 'loads that brought an answer')
    return '0'
  })
}
