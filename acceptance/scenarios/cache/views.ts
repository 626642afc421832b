import { type Answer, tally } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { requestBytes } from '../../support/connection.ts'
import { created, demand, same, status } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { freshCustomer, freshKey, sampleOrder } from '../../support/samples.ts'
import { together } from '../../support/together.ts'
import { invalidate } from './invalidate.ts'

const VIEWS = ['full', 'masked'] as const
type View = (typeof VIEWS)[number]

/** A masked key and a full one read the same things in turn, and neither ever sees what the other does. */
export async function views(bench: Bench): Promise<void> {
  const { trial, as, admin } = bench
  for (const first of VIEWS) {
    const { paths, tags } = await secretOrder(bench)
    for (const [what, path] of Object.entries(paths)) {
      await trial.check(
        `${what}, read by the ${first} key first: each sees its own view, cold and warm`,
        async () => {
          const order = first === 'full' ? VIEWS : VIEWS.toReversed()
          const seen: Record<View, Answer[]> = { full: [], masked: [] }
          for (const temperature of ['cold', 'warm', 'warm', 'cold', 'warm']) {
            if (temperature === 'cold') await invalidate(admin, ...tags)
            for (const view of order) {
              const answer = await as[view].get(path)
              judged(answer, view)
              seen[view].push(answer)
            }
          }
          for (const view of VIEWS) {
            for (const { body, headers } of seen[view]) {
              same(body, seen[view][0]?.body, `the body in the ${view} view`)
              same(headers.etag, seen[view][0]?.headers.etag, `the ETag of the ${view} view`)
            }
          }
        },
      )
    }
  }

  const { paths, tags } = await secretOrder(bench)
  for (const [what, path] of Object.entries(paths)) {
    await trial.check(`${what}: the ETag of one view never matches the other, cold or warm`, async () => {
      const [full, masked] = [await as.full.get(path), await as.masked.get(path)]
      for (const temperature of ['warm', 'cold', 'warm']) {
        if (temperature === 'cold') await invalidate(admin, ...tags)
        judged(await as.full.get(path, { 'if-none-match': String(masked.headers.etag) }), 'full')
        judged(await as.masked.get(path, { 'if-none-match': String(full.headers.etag) }), 'masked')
        status(await as.full.get(path, { 'if-none-match': String(full.headers.etag) }), 304)
        status(await as.masked.get(path, { 'if-none-match': String(masked.headers.etag) }), 304)
      }
    })

    await trial.check(`${what}: 50 at once with either key, cold: each sees its own view`, async () => {
      await invalidate(admin, ...tags)
      const callers = Array.from({ length: 50 }, (_, index) => VIEWS[index % 2] as View)
      const bytes = callers.map(view => requestBytes('GET', path, { authorization: `Bearer ${KEYS[view]}` }))
      const answers = await together(trial, bench.server.port, bytes)
      for (const [index, answer] of answers.entries()) judged(answer, callers[index] as View)
      return tally(answers)
    })
  }
}

/** An order with something to hide, under which paths it is read, and under which tags it is cached. */
async function secretOrder({ api }: Bench) {
  const [key, customerId] = [freshKey(), `secret-${freshCustomer()}`]
  const { id } = created(await api.order(key, sampleOrder({ customerId, reference: 'secret-reference' })))
  return {
    paths: {
      'an order': `/v1/orders/${id}`,
      'a list by customer': `/v1/orders?customerId=${customerId}`,
      'a list by key': `/v1/orders?idempotencyKey=${key}`,
    },
    tags: [`order:${id}`, `customer:one:${customerId}`],
  }
}

function judged(answer: Answer, view: View): void {
  status(answer, 200)
  const secrets = answer.body.match(/secret/g)?.length ?? 0
  demand(secrets === (view === 'full' ? 2 : 0), `the ${view} view, saw ${answer.body}`)
}
