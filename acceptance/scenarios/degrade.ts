import { accounted } from '../support/accounted.ts'
import { type Bench, openBench, WIDE_BUDGETS } from '../support/bench.ts'
import { created, demand, problem, same } from '../support/expect.ts'
import { KEYS } from '../support/keys.ts'
import { Metrics } from '../support/metrics.ts'
import { type Behaviour, PricingStandIn } from '../support/pricing-stand-in.ts'
import { promptly } from '../support/promptly.ts'
import { freshKey, freshSku, sampleOrder } from '../support/samples.ts'
import type { Json } from '../support/server.ts'
import type { Scenario, Trial } from '../support/trial.ts'
import { until } from '../support/until.ts'

const ANSWER_LIMIT_MS = 250

// Budgets that no pause of the machine exhausts: a fault is told at once or not at all. And a breaker that never
// opens, so that each order reaches pricing instead of a door that the last one shut.
const NEVER_OPEN: Json = {
  ...WIDE_BUDGETS,
  outbound: { ...WIDE_BUDGETS.outbound, breaker: { minimumRps: 100_000 } },
}

/** What pricing can do wrong at the level of HTTP. */
const FAULTS: Record<string, Behaviour> = {
  'answers 500': { kind: 'say', status: 500, body: '{"error":"boom at /srv/pricing.js:1"}' },
  'answers 503': { kind: 'say', status: 503, body: '' },
  'answers 404': { kind: 'say', status: 404, body: 'no such thing', contentType: 'text/plain' },
  'answers 204': { kind: 'say', status: 204, body: '' },
  'resets the connection': { kind: 'reset' },
  'breaks off': { kind: 'truncate' },
  'answers HTML': { kind: 'say', status: 200, body: '<html>Welcome</html>', contentType: 'text/html' },
  'answers no JSON': { kind: 'say', status: 200, body: '{"prices":[' },
  'answers null': { kind: 'say', status: 200, body: 'null' },
}

/** What pricing can say that is well-formed and still no answer to `sku`. */
const LIES: Record<string, (sku: string) => unknown> = {
  'leaves the SKU out': () => ({ prices: [], unknown: [] }),
  'says two prices': sku => ({ prices: [1, 2].map(unitPrice => ({ sku, unitPrice })), unknown: [] }),
  'says a negative price': sku => ({ prices: [{ sku, unitPrice: -1 }], unknown: [] }),
  'says a fraction': sku => ({ prices: [{ sku, unitPrice: 9.99 }], unknown: [] }),
  'says a string': sku => ({ prices: [{ sku, unitPrice: '5' }], unknown: [] }),
  'says null': sku => ({ prices: [{ sku, unitPrice: null }], unknown: [] }),
  'says a price beyond exact numbers': sku => ({ prices: [{ sku, unitPrice: 2 ** 60 }], unknown: [] }),
  'gives no list': sku => ({ prices: { [sku]: 5 }, unknown: [] }),
}

/**
 * Pricing that fails: orders are refused with 503 and nothing is stored, whatever it does; what was answered
 * before is answered still; once it is well, orders are made again.
 */
export const degrade: Scenario = {
  name: 'degrade',
  limitMs: 60_000,
  async play(trial) {
    const bench = await openBench(trial, NEVER_OPEN)
    for (const [what, behaviour] of Object.entries(FAULTS)) await failing(bench, what, () => behaviour)
    for (const [what, lie] of Object.entries(LIES)) {
      await failing(bench, what, sku => ({ kind: 'say', status: 200, body: JSON.stringify(lie(sku)) }))
    }
    await replays(bench)
    await accounted(bench, 'every fault and lie')
    const breaking = await openBench(trial, WIDE_BUDGETS)
    await breaker(breaking)
    await accounted(breaking, 'the breaker went round')
    await unreachable(trial)
  },
}

async function failing({ trial, api, pricing }: Bench, what: string, behaviour: (sku: string) => Behaviour) {
  await trial.check(`pricing ${what}: 503, nothing stored, and later the key makes its order`, async () => {
    const [key, sku, calls] = [freshKey(), freshSku(), pricing.calls.length]
    const request = sampleOrder({ items: [{ sku, quantity: 2 }] })
    pricing.behaviour = behaviour(sku)
    await promptly(
      [0, ANSWER_LIMIT_MS],
      async () => [await api.order(key, request)],
      answer => {
        problem(answer, 503, 'pricing-unavailable')
        demand(!/boom|srv|welcome/i.test(answer.body), `nothing of what pricing said, saw ${answer.body}`)
      },
    )
    demand(pricing.calls.length > calls, 'the order to have reached pricing')
    pricing.behaviour = { kind: 'answer' }
    created(await api.order(key, request))
  })
}

async function replays({ trial, api, pricing, admin }: Bench): Promise<void> {
  await trial.check('while pricing is down, a request answered before gets its answer again', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    pricing.behaviour = { kind: 'answer' }
    const first = await api.order(key, request)
    created(first)
    const calls = pricing.calls.length
    pricing.behaviour = { kind: 'reset' }
    const again = await api.order(key, request)
    created(again, true)
    same(again.body, first.body, 'the body')
    problem(await api.order(key, sampleOrder()), 409, 'idempotency-conflict')
    same(pricing.calls.length, calls, 'the calls to pricing')
  })

  await trial.check('what pricing did is counted, and none of it as an error of ours', async () => {
    const metrics = await Metrics.read(admin)
    const rejected = metrics.sum('punctual_requests_total', { status: '503', outcome: 'rejected' })
    demand(rejected >= Object.keys(FAULTS).length, `a 503 for each fault, saw ${rejected}`)
    demand(
      metrics.sum('punctual_downstream_unavailable_total') > 0,
      'punctual_downstream_unavailable_total above 0',
    )
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    return `${rejected} requests with 503`
  })
}

async function breaker({ trial, api, pricing, admin }: Bench): Promise<void> {
  const state = async () => (await Metrics.read(admin)).sum('punctual_outbound_breaker_state')

  await trial.check('pricing that keeps failing is left alone: 503 at once, without a call', async () => {
    same(await state(), 0, 'the state of the breaker before')
    pricing.behaviour = { kind: 'reset' }
    const ask = () => api.order(freshKey(), sampleOrder())
    await until('an order refused without a call', async () => {
      const calls = pricing.calls.length
      problem(await ask(), 503, 'pricing-unavailable')
      return pricing.calls.length === calls
    })
    await promptly(
      [0, 20],
      async () => [await ask()],
      answer => problem(answer, 503, 'pricing-unavailable'),
    )
    demand((await state()) > 0, 'another state of the breaker')
    return `refused after ${pricing.calls.length} failed calls`
  })

  await trial.check(
    'pricing that is well again is found out: orders are made, the breaker closes',
    async () => {
      pricing.behaviour = { kind: 'answer' }
      const order = () => api.order(freshKey(), sampleOrder())
      await until('an order', async () => (await order()).status === 201, 5_000)
      await until('a closed breaker', async () => (await order()).status === 201 && (await state()) === 0)
    },
  )
}

async function unreachable(trial: Trial): Promise<void> {
  await trial.check('nobody listens where pricing should be: 503 in time', async () => {
    const gone = await PricingStandIn.listen()
    const { url } = gone
    await gone.close()
    const config = { ...WIDE_BUDGETS, lifecycle: { warmUp: false } }
    const server = await trial.server({ pricingUrl: url, config })
    const api = trial.client(server.port, KEYS.full)
    const ask = async () => [await api.order(freshKey(), sampleOrder())]
    await promptly([0, ANSWER_LIMIT_MS], ask, answer => problem(answer, 503, 'pricing-unavailable'))
  })
}
