import type { Answer } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { created, demand, problem, same } from '../../support/expect.ts'
import { freshKey, freshSku, sampleOrder } from '../../support/samples.ts'

/** One key, one order: what a repeated request gets, and what a different one gets. */
export async function replaying({ trial, api, as }: Bench): Promise<void> {
  await trial.check('a repeated request gets the first answer again, byte for byte', async () => {
    const [key, request] = [freshKey(), sampleOrder({ reference: 'once' })]
    const first = await api.order(key, request)
    created(first)
    for (let repeat = 1; repeat <= 3; repeat++) sameReply(await api.order(key, request), first)
  })

  await trial.check('a replay has a trace of its own', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    const first = await api.order(key, request)
    const again = await api.order(key, request)
    sameReply(again, first)
    demand(again.headers['x-trace-id'] !== first.headers['x-trace-id'], 'another X-Trace-Id on the replay')
  })

  const sku = freshSku()
  const text = `{"customerId":"c-1","currency":"USD","items":[{"sku":"${sku}","quantity":10}],"reference":"A/é"}`
  const spellings: Record<string, string> = {
    'fields in another order': `{"reference":"A/é","items":[{"quantity":10,"sku":"${sku}"}],"currency":"USD","customerId":"c-1"}`,
    'white space': `\n { "customerId" :\t"c-1",\r\n"currency": "USD", "items": [ {"sku":"${sku}", "quantity":10 } ], "reference":"A/é" } \n`,
    'escaped characters': text.replace('A/é', '\\u0041\\/\\u00e9').replace('"currency"', '"\\u0063urrency"'),
    'a number written 1e1': text.replace(':10}', ':1e1}'),
    'a number written 10.0': text.replace(':10}', ':10.0}'),
  }
  const key = freshKey()
  for (const [what, spelling] of Object.entries(spellings)) {
    await trial.check(`the same request with ${what} is the same request`, async () => {
      const first = await api.order(key, text)
      sameReply(await api.order(key, spelling), first)
    })
  }

  const different: Record<string, (request: ReturnType<typeof sampleOrder>) => object> = {
    'another quantity': request => ({
      ...request,
      items: request.items.map(item => ({ ...item, quantity: 9 })),
    }),
    'another customer': request => ({ ...request, customerId: 'customer-8' }),
    'another currency': request => ({ ...request, currency: 'USD' }),
    'a reference more': request => ({ ...request, reference: 'more' }),
    'its items turned round': request => ({ ...request, items: request.items.toReversed() }),
  }
  for (const [what, change] of Object.entries(different)) {
    await trial.check(`a key used again with ${what} is a conflict, and the order stays`, async () => {
      const [key, items] = [freshKey(), [freshSku(), freshSku()].map(sku => ({ sku, quantity: 2 }))]
      const request = sampleOrder({ items })
      const first = await api.order(key, request)
      created(first)
      problem(await api.order(key, change(request)), 409, 'idempotency-conflict')
      sameReply(await api.order(key, request), first)
    })
  }

  await trial.check('two tenants may use one key: two orders, no replay', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    const ours = created(await api.order(key, request))
    const theirs = created(await as.stranger.order(key, request))
    demand(ours.id !== theirs.id, 'two ids')
    problem(await as.stranger.order(key, sampleOrder({ reference: 'other' })), 409, 'idempotency-conflict')
  })

  await trial.check('two keys of one tenant share its idempotency keys', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    const first = await api.order(key, request)
    sameReply(await as.writer.order(key, request), first)
  })

  await trial.check('a refused request leaves its key free', async () => {
    const key = freshKey()
    problem(await api.order(key, { ...sampleOrder(), currency: 'euro' }), 400, 'validation-failed')
    created(await api.order(key, sampleOrder()))
  })
}

function sameReply(again: Answer, first: Answer): void {
  created(again, true)
  same(again.body, first.body, 'the body of the replay')
  for (const name of ['location', 'etag', 'content-type'])
    same(again.headers[name], first.headers[name], name)
}
