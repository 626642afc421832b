import { accounted } from '../support/accounted.ts'
import type { Answer } from '../support/answer.ts'
import { jsonOf } from '../support/answer.ts'
import { type Bench, openBench, WIDE_BUDGETS } from '../support/bench.ts'
import { created, demand, problem, same } from '../support/expect.ts'
import { Metrics } from '../support/metrics.ts'
import { unitPriceOf } from '../support/pricing-stand-in.ts'
import { promptly } from '../support/promptly.ts'
import { freshKey, freshSku, sampleOrder } from '../support/samples.ts'
import type { Json } from '../support/server.ts'
import type { Scenario } from '../support/trial.ts'
import { until } from '../support/until.ts'

// Of the defaults: pricing may hold a request this long, whatever it does; then the machine's own jitter.
const LEASE_MS = 150
const JITTER_MS = 30

// A breaker that never opens, and budgets in which a check can hold pricing for as long as it likes.
const PATIENT: Json = {
  ...WIDE_BUDGETS,
  outbound: { ...WIDE_BUDGETS.outbound, breaker: { minimumRps: 100_000 } },
}

// A price is used again for as short a time as it can be.
const FORGETFUL: Json = { ...PATIENT, cache: { ...WIDE_BUDGETS.cache, l1Seconds: 1, negativeSeconds: 0 } }

/**
 * Pricing that is slow: it costs each caller its share of the budget and no more, orders share what they ask for,
 * nobody's end is another's, and every attempt is accounted for.
 */
export const slowDependency: Scenario = {
  name: 'slow-dependency',
  limitMs: 60_000,
  async play(trial) {
    await share(await openBench(trial, { outbound: { breaker: { minimumRps: 100_000 } } }))
    const patient = await openBench(trial, PATIENT)
    await collapsed(patient)
    await batched(patient)
    await apart(patient)
    await concerned(patient)
    await hedged(patient)
    await accounted(patient, 'all that was shared, hedged and left')
    const forgetful = await openBench(trial, FORGETFUL)
    await remembered(forgetful)
    await accounted(forgetful, 'the outage')
  },
}

async function share({ trial, api, pricing }: Bench): Promise<void> {
  for (const delayMs of [60, 120, 300, 2_000]) {
    await trial.check(`pricing takes ${delayMs} ms: 504 within its share of the budget`, async () => {
      pricing.behaviour = { kind: 'answer', delayMs }
      await promptly(
        [0, LEASE_MS + JITTER_MS],
        async () => [await api.order(freshKey(), sampleOrder())],
        answer => {
          const body = problem(answer, 504, 'budget-exhausted')
          same(body.stage, 'pricing', 'stage')
          same(body.committed, 'no', 'committed')
        },
      )
    })
  }
  await trial.check('pricing takes 15 ms: an order', async () => {
    pricing.behaviour = { kind: 'answer', delayMs: 15 }
    created(await until('an order', async () => orderOr504(await api.order(freshKey(), sampleOrder()))))
  })
}

function orderOr504(answer: Answer): Answer | false {
  return answer.status === 504 ? false : answer
}

async function collapsed({ trial, api, pricing, admin }: Bench): Promise<void> {
  await trial.check('30 orders of one SKU at once are one call to pricing', async () => {
    const [calls, sku] = [pricing.calls.length, freshSku()]
    pricing.behaviour = { kind: 'hold' }
    const orders = Array.from({ length: 30 }, () =>
      api.order(freshKey(), sampleOrder({ items: [{ sku, quantity: 1 }] })),
    )
    await pricing.called(calls + 1)
    await until('all orders to wait', async () => (await inFlight()) === 30)
    pricing.release()
    for (const answer of await Promise.all(orders)) created(answer)
    same(pricing.calls.length - calls, 1, 'the calls to pricing')
  })

  async function inFlight(): Promise<number> {
    return (await Metrics.read(admin)).sum('punctual_admission_in_flight')
  }
}

async function batched({ trial, api, pricing }: Bench): Promise<void> {
  await trial.check(
    '20 orders of different SKUs at once share calls, and no SKU is asked for twice',
    async () => {
      const calls = pricing.calls.length
      pricing.behaviour = { kind: 'answer' }
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => api.order(freshKey(), sampleOrder())),
      )
      for (const answer of answers) created(answer)
      const asked = pricing.calls.slice(calls).flatMap(({ skus }) => skus)
      same(new Set(asked).size, 20, 'the SKUs asked for')
      same(asked.length, 20, 'the times that any was asked for')
      const made = pricing.calls.length - calls
      demand(made <= 10, `at most 10 calls for 20 orders, saw ${made}`)
      return `${made} calls`
    },
  )
}

async function apart({ trial, api, pricing }: Bench): Promise<void> {
  await trial.check('a caller that runs out of time leaves the others theirs', async () => {
    const [calls, sku] = [pricing.calls.length, freshSku()]
    const order = (headers = {}) =>
      api.order(freshKey(), sampleOrder({ items: [{ sku, quantity: 1 }] }), headers)
    pricing.behaviour = { kind: 'hold' }
    const patient = order()
    const call = await pricing.called(calls + 1)
    problem(await order({ 'request-budget-ms': '80' }), 504, 'budget-exhausted')
    same(call.abandoned, false, 'whether the call was given up')
    pricing.release()
    created(await patient)
  })

  await trial.check('the last one out gives the call up', async () => {
    const calls = pricing.calls.length
    pricing.behaviour = { kind: 'hold' }
    const budget = { 'request-budget-ms': '80' }
    problem(await api.order(freshKey(), sampleOrder(), budget), 504, 'budget-exhausted')
    const call = await pricing.called(calls + 1)
    await until('the call to be given up', () => call.abandoned)
    pricing.release()
  })
}

async function concerned({ trial, api, pricing }: Bench): Promise<void> {
  await trial.check('a bad price in a shared answer fails only the order that asked for it', async () => {
    const [good, bad] = [freshSku(), freshSku()]
    const prices = [
      { sku: good, unitPrice: unitPriceOf(good) },
      { sku: bad, unitPrice: -5 },
      { sku: 'SKU-nobody-asked', unitPrice: 1 },
    ]
    pricing.behaviour = { kind: 'say', status: 200, body: JSON.stringify({ prices, unknown: [] }) }
    const order = (sku: string) => api.order(freshKey(), sampleOrder({ items: [{ sku, quantity: 1 }] }))
    const [well, ill] = await Promise.all([order(good), order(bad)])
    created(well)
    problem(ill, 503, 'pricing-unavailable')
    pricing.behaviour = { kind: 'answer' }
  })
}

async function hedged({ trial, api, pricing, admin }: Bench): Promise<void> {
  await trial.check(
    'an answer that is slower than most gets a second attempt, and the first to answer wins',
    async () => {
      pricing.behaviour = { kind: 'answer' }
      // Enough quick answers to know what is usual, and to have earned a hedge.
      for (let n = 0; n < 40; n++) created(await api.order(freshKey(), sampleOrder()))
      const won = async () =>
        (await Metrics.read(admin)).sum('punctual_outbound_hedges_total', { result: 'won' })
      const before = await won()
      const calls = pricing.calls.length
      pricing.behaviour = { kind: 'hold' }
      const order = api.order(freshKey(), sampleOrder())
      const first = await pricing.called(calls + 1)
      pricing.behaviour = { kind: 'answer' }
      created(await order)
      same(pricing.calls.length - calls, 2, 'the calls to pricing')
      await until('the slow attempt to be given up', () => first.abandoned)
      same((await won()) - before, 1, 'the hedges that won')
      pricing.release()
    },
  )
}

async function remembered({ trial, api, pricing, admin }: Bench): Promise<void> {
  await trial.check('while pricing is down, the last good price makes an order, and says so', async () => {
    const sku = freshSku()
    const order = async () => api.order(freshKey(), sampleOrder({ items: [{ sku, quantity: 3 }] }))
    pricing.behaviour = { kind: 'answer' }
    same(created(await order()).pricing, 'live', 'pricing')
    pricing.behaviour = { kind: 'reset' }
    // Until the fresh price is too old to be used again.
    const answer = await until(
      'an order at the remembered price',
      async () => {
        const seen = await order()
        return jsonOf(seen).pricing === 'fallback' && seen
      },
      10_000,
    )
    same(answer.status, 201, 'the status')
    same(jsonOf(answer).total, 3 * unitPriceOf(sku), 'the total')
    demand(
      (await Metrics.read(admin)).sum('punctual_fallback_served_total') > 0,
      'punctual_fallback_served_total above 0',
    )
    problem(await api.order(freshKey(), sampleOrder()), 503, 'pricing-unavailable')
  })
}
