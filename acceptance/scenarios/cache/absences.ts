import type { Answer } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { created, pageOf, problem, same } from '../../support/expect.ts'
import { freshCustomer, freshKey, sampleOrder } from '../../support/samples.ts'
import { watched } from './activity.ts'

/** What is not there is remembered as such, until it is. */
export async function absences({ trial, api, as, admin }: Bench): Promise<void> {
  const [key, customerId] = [freshKey(), freshCustomer()]
  const lists: Record<string, Record<string, string>> = {
    'a customer without orders': { customerId },
    'a key that nobody used': { idempotencyKey: key },
    'the two together': { customerId, idempotencyKey: key },
  }
  for (const [what, query] of Object.entries(lists)) {
    await trial.check(`the list of ${what} is empty, and the second time without a load`, async () => {
      const ask = async () => same(pageOf(await api.list(query)).orders.length, 0, 'the orders')
      await ask()
      await as.masked.list(query)
      const [, activity] = await watched(admin, ask)
      same(activity.loads, 0, 'the loads')
      same(activity.hits + activity.negatives, 1, 'the answers from the cache')
      return `${activity.hits} hit, ${activity.negatives} negative`
    })
  }

  await trial.check(
    'then the order is made, and each list shows it at once, to everyone who may see it',
    async () => {
      const { id } = created(await api.order(key, sampleOrder({ customerId })))
      for (const query of Object.values(lists)) {
        for (const client of [api, as.masked]) {
          same(idsOf(await client.list(query)), id, 'the ids')
        }
        same(idsOf(await as.stranger.list(query)), '', 'the ids that another tenant sees')
      }
    },
  )

  await trial.check('an order that is not there is remembered as such: 404 without a load', async () => {
    const path = '/v1/orders/01920000-0000-7000-8000-00000000beef'
    problem(await api.get(path), 404, 'not-found')
    const [, activity] = await watched(admin, async () => problem(await api.get(path), 404, 'not-found'))
    same(activity.loads, 0, 'the loads')
    same(activity.negatives, 1, 'the negative answers from the cache')
    return '404, negative'
  })

  await trial.check("another tenant's 404 for an order says nothing to those who have it", async () => {
    const first = await api.order(freshKey(), sampleOrder())
    const { id } = created(first)
    for (let repeat = 1; repeat <= 2; repeat++) {
      problem(await as.stranger.get(`/v1/orders/${id}`), 404, 'not-found')
      same((await api.get(`/v1/orders/${id}`)).body, first.body, 'the body')
    }
  })
}

const idsOf = (answer: Answer) =>
  pageOf(answer)
    .orders.map(({ id }) => id)
    .join()
