import type { Answer } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import type { Connection } from '../../support/connection.ts'
import { answered, between, created, demand, matches, problem, same } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import { eventually, promptly } from '../../support/promptly.ts'
import { freshKey, orderBytes, sampleOrder } from '../../support/samples.ts'
import { until } from '../../support/until.ts'

const BUDGET_MS = 200
const ANSWER_LIMIT_MS = 250

/** Pricing that is too slow, budgets that are shorter, bodies that trickle. */
export async function deadlines({ trial, api, pricing, server, admin }: Bench): Promise<void> {
  await trial.check('pricing sees what is left for an attempt, who asks, and in which trace', async () => {
    const answer = await eventually(api, freshKey(), sampleOrder())
    created(answer)
    const headers = pricing.calls.at(-1)?.headers ?? {}
    matches(String(headers['request-budget-ms']), /^[1-9]\d*$/, 'Request-Budget-Ms')
    between(Number(headers['request-budget-ms']), 1, 40, 'Request-Budget-Ms')
    matches(String(headers['x-attempt-id']), /^\S+$/, 'X-Attempt-Id')
    same(String(headers.traceparent).slice(3, 35), answer.headers['x-trace-id'], 'the trace')
  })

  await trial.check(
    'pricing slower than the budget: 504 in time, nothing stored, later the key succeeds',
    async () => {
      const [key, request] = [freshKey(), sampleOrder()]
      let before = 0
      const ask = async () => {
        before = pricing.calls.length
        return [await api.order(key, request)]
      }
      pricing.behaviour = { kind: 'answer', delayMs: 300 }
      await promptly([30, ANSWER_LIMIT_MS], ask, answer => exhausted(answer, BUDGET_MS, 'pricing'))
      const attempts = pricing.calls.slice(before).map(({ headers }) => headers)
      between(attempts.length, 1, 2, 'the number of attempts')
      same(
        new Set(attempts.map(headers => headers['x-attempt-id'])).size,
        attempts.length,
        'distinct attempt ids',
      )
      for (const headers of attempts)
        between(Number(headers['request-budget-ms']), 1, 40, 'Request-Budget-Ms')
      pricing.behaviour = { kind: 'answer' }
      created(await eventually(api, key, request))
    },
  )

  await trial.check('an attempt that ran out of time is cancelled, not left to itself', async () => {
    pricing.behaviour = { kind: 'hold' }
    const before = pricing.calls.length
    exhausted(await api.order(freshKey(), sampleOrder()), BUDGET_MS, 'pricing')
    const calls = pricing.calls.slice(before)
    await until('each call to pricing to be cancelled', () => calls.every(call => call.abandoned), 100)
    pricing.release()
  })

  await trial.check('a shorter Request-Budget-Ms ends sooner, and is the budget', async () => {
    pricing.behaviour = { kind: 'answer', delayMs: 300 }
    const [key, request] = [freshKey(), sampleOrder()]
    const ask = async () => [await api.order(key, request, { 'request-budget-ms': '50' })]
    await promptly([0, 75], ask, answer => exhausted(answer, 50, 'pricing'))
    pricing.behaviour = { kind: 'answer' }
    created(await eventually(api, key, request))
  })

  await trial.check('a larger Request-Budget-Ms is capped', async () => {
    pricing.behaviour = { kind: 'answer', delayMs: 300 }
    const ask = async () => [await api.order(freshKey(), sampleOrder(), { 'request-budget-ms': '60000' })]
    await promptly([0, ANSWER_LIMIT_MS], ask, answer => exhausted(answer, BUDGET_MS, 'pricing'))
    pricing.behaviour = { kind: 'answer' }
  })

  await trial.check('a budget too short for any stage is refused at once, nothing stored', async () => {
    const [key, request, before] = [freshKey(), sampleOrder(), pricing.calls.length]
    const ask = async () => [await api.order(key, request, { 'request-budget-ms': '1' })]
    await promptly([0, 20], ask, answer => exhausted(answer, 1))
    same(pricing.calls.length, before, 'the calls to pricing')
    created(await eventually(api, key, request))
  })

  await trial.check('a budget too short for a commit ends before one begins', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    exhausted(await api.order(key, request, { 'request-budget-ms': '15' }), 15)
    created(await eventually(api, key, request))
  })

  await trial.check('a body that trickles: 504 when the budget is over', async () => {
    const key = freshKey()
    const ask = async () => [await trickle(await trial.connect(server.port), key)]
    // The lease also charges what the request may have waited unseen: a few milliseconds early is its promise.
    await promptly([BUDGET_MS - 10, ANSWER_LIMIT_MS], ask, answer => exhausted(answer, BUDGET_MS, 'body'))
    created(await eventually(api, key, sampleOrder()))
  })

  await trial.check('a body that trickles under a shorter budget: 504 sooner', async () => {
    const shorter = { 'request-budget-ms': '80' }
    const ask = async () => [await trickle(await trial.connect(server.port), freshKey(), shorter)]
    await promptly([70, 130], ask, answer => exhausted(answer, 80, 'body'))
  })

  await trial.check('exhausted budgets are counted by stage and are no uncontrolled error', async () => {
    const metrics = await Metrics.read(admin)
    const count = (stage: string) => metrics.sum('punctual_budget_exhausted_total', { stage })
    demand(count('pricing') >= 4, `four or more in pricing, saw ${count('pricing')}`)
    demand(count('body') >= 2, `two or more in the body, saw ${count('body')}`)
    const rejected = metrics.sum('punctual_requests_total', { status: '504', outcome: 'rejected' })
    same(rejected, metrics.sum('punctual_budget_exhausted_total'), 'requests with 504')
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    same(metrics.sum('punctual_admission_in_flight'), 0, 'requests in flight')
    return `${rejected} requests`
  })
}

function exhausted(answer: Answer, budgetMs: number, stage?: string): void {
  const body = problem(answer, 504, 'budget-exhausted')
  same(body.budgetMs, budgetMs, 'budgetMs')
  same(body.committed, 'no', 'committed')
  if (stage !== undefined) same(body.stage, stage, 'stage')
}

/** Sends a body byte by byte, too slowly to end before any budget does, until an answer comes. */
async function trickle(
  connection: Connection,
  key: string,
  extra: Record<string, string> = {},
): Promise<Answer> {
  connection.send(orderBytes(key, '', { 'content-length': '1000', ...extra }))
  const timer = setInterval(() => connection.send(' '), 10)
  try {
    return answered(await connection.read())
  } finally {
    clearInterval(timer)
  }
}
