import type { Bench } from '../../support/bench.ts'
import { between, created, demand, pointers, problem, same } from '../../support/expect.ts'
import { unitPriceOf } from '../../support/pricing-stand-in.ts'
import { freshKey, freshSku, sampleOrder } from '../../support/samples.ts'

/** POST /v1/orders: what a new order looks like, and the trace it belongs to. */
export async function creating({ trial, api, pricing }: Bench): Promise<void> {
  await trial.check('an order is created, priced and shown whole', async () => {
    const items = [
      { sku: freshSku(), quantity: 3 },
      { sku: freshSku(), quantity: 1 },
    ]
    const request = sampleOrder({
      customerId: 'a.B_c:d-9',
      currency: 'JPY',
      items,
      reference: 'PO 4711 / Übergröße',
    })
    const order = created(await api.order(freshKey(), request))
    same(order.customerId, request.customerId, 'customerId')
    same(order.currency, 'JPY', 'currency')
    same(order.reference, request.reference, 'reference')
    same(order.createdAt, order.updatedAt, 'createdAt, against updatedAt,')
    between(Math.abs(Date.now() - Date.parse(order.createdAt)), 0, 2_000, 'the age of createdAt')
    const ordered = order.items.map(({ sku, quantity, unitPrice }) => `${sku} ${quantity} ${unitPrice}`)
    const expected = items.map(({ sku, quantity }) => `${sku} ${quantity} ${unitPriceOf(sku)}`)
    same(ordered.join(), expected.join(), 'the items, in their order,')
  })

  await trial.check('an order without a reference has no such member', async () => {
    demand(!('reference' in created(await api.order(freshKey(), sampleOrder()))), 'no member "reference"')
  })

  await trial.check('two orders have ids in the order of their making', async () => {
    const first = created(await api.order(freshKey(), sampleOrder()))
    const second = created(await api.order(freshKey(), sampleOrder()))
    demand(first.id < second.id, `${first.id} < ${second.id}`)
  })

  await trial.check('a SKU without a price is named', async () => {
    const known = freshSku()
    const items = [known, `NONE-${freshSku()}`, `NONE-${freshSku()}`].map(sku => ({ sku, quantity: 1 }))
    const key = freshKey()
    const answer = await api.order(key, sampleOrder({ items }))
    problem(answer, 400, 'unknown-sku')
    same(pointers(answer).sort().join(), '/items/1/sku,/items/2/sku', 'the pointers')
    created(await api.order(key, sampleOrder()))
  })

  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  for (const traceparent of [
    `00-${traceId}-00f067aa0ba902b7-01`,
    `00-${traceId}-00f067aa0ba902b7-00`,
    `cc-${traceId}-00f067aa0ba902b7-01-what-the-future-will-bring`,
  ]) {
    await trial.check(`traceparent ${traceparent} is continued`, async () => {
      const answer = await api.order(freshKey(), sampleOrder(), { traceparent })
      created(answer)
      same(answer.headers['x-trace-id'], traceId, 'X-Trace-Id')
      same(
        String(pricing.calls.at(-1)?.headers.traceparent).slice(3, 35),
        traceId,
        'the trace that pricing sees',
      )
    })
  }

  for (const traceparent of [
    'nonsense',
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-00f067aa0ba902b7-01`,
    `ff-${traceId}-00f067aa0ba902b7-01`,
    `00-${traceId}-00f067aa0ba902b7-01-more`,
    `00-${traceId}-00f067aa0ba902b7`,
  ]) {
    await trial.check(`traceparent ${traceparent} starts a new trace`, async () => {
      const answer = await api.order(freshKey(), sampleOrder(), { traceparent })
      created(answer)
      const seen = answer.headers['x-trace-id']
      demand(seen?.toLowerCase() !== traceId, `a trace id of our own, saw ${seen}`)
    })
  }

  for (const budget of ['0', '-1', '1.5', 'soon', '', '1e2', '+50', '0x40', '100 ms', '1_000', 'Infinity']) {
    await trial.check(`Request-Budget-Ms "${budget}" is refused`, async () => {
      const key = freshKey()
      problem(await api.order(key, sampleOrder(), { 'request-budget-ms': budget }), 400, 'validation-failed')
      created(await api.order(key, sampleOrder()))
    })
  }

  await trial.check('Request-Budget-Ms given twice is refused', async () => {
    const answer = await api.order(freshKey(), sampleOrder(), { 'request-budget-ms': ['150', '160'] })
    problem(answer, 400, 'validation-failed')
  })

  for (const budget of ['5000', '99999999999999999999']) {
    await trial.check(`Request-Budget-Ms "${budget}" is capped, not refused`, async () => {
      created(await api.order(freshKey(), sampleOrder(), { 'request-budget-ms': budget }))
    })
  }
}
