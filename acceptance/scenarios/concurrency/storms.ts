import { type Answer, tally } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { created, demand, problem, same } from '../../support/expect.ts'
import { freshKey, orderBytes, sampleOrder } from '../../support/samples.ts'
import { together } from '../../support/together.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'
import { idle } from './idle.ts'

const STORMS = 3

/** 150 at once, with distinct keys: sixty find a place, the rest are told so. */
export async function storm(bench: Bench): Promise<void> {
  const { trial, pricing, server, admin } = bench
  await warmUp(bench)

  await trial.check('150 requests released together: only 201 and 429, and both', async () => {
    pricing.behaviour = { kind: 'answer', delayMs: 20 }
    return calm(bench, [201, 429], async () => {
      const answers = await released(trial, server.port, 150, freshKey)
      for (const answer of answers) if (answer.status === 201) created(answer)
      return answers
    })
  })

  await trial.check('refusals are counted, and nothing is in flight after the storm', async () => {
    const metrics = await idle(admin)
    const refused = metrics.sum('punctual_requests_total', { status: '429', outcome: 'rejected' })
    demand(refused > 0, 'requests with 429 counted')
    same(
      metrics.sum('punctual_admission_rejected_total', { scope: 'global' }),
      refused,
      'refusals at the gate',
    )
    same(metrics.sum('punctual_requests_total', { outcome: 'client_abort' }), 0, 'hang-ups')
    return `${refused} refused`
  })
}

/** Many at once with one key: one order, whoever of them came first. */
export async function oneKey(bench: Bench): Promise<void> {
  const { trial, api, pricing, server } = bench
  await warmUp(bench)

  await trial.check('50 in parallel with one key: one order, fifty identical answers', async () => {
    pricing.behaviour = { kind: 'answer', delayMs: 5 }
    return calm(bench, [201], async () => {
      const [key, body] = [freshKey(), JSON.stringify(sampleOrder({ reference: 'only once' }))]
      const answers = await released(trial, server.port, 50, () => key, body)
      const orders = answers.filter(answer => answer.status === 201)
      const replayed = orders.filter(({ headers }) => headers['idempotent-replayed'] !== undefined)
      for (const answer of orders) {
        created(answer, replayed.includes(answer))
        for (const name of ['location', 'etag']) same(answer.headers[name], orders[0]?.headers[name], name)
        same(answer.body, orders[0]?.body, 'the body')
      }
      if (orders.length === answers.length) same(replayed.length, orders.length - 1, 'the number of replays')
      if (orders[0]) same((await api.order(key, body)).body, orders[0].body, 'the body of a later replay')
      return answers
    })
  })

  await trial.check(
    'two requests in parallel with one key that differ: one order, one conflict',
    async () => {
      const key = freshKey()
      const answers = await Promise.all([api.order(key, sampleOrder()), api.order(key, sampleOrder())])
      same(
        answers
          .map(answer => answer.status)
          .sort()
          .join(),
        '201,409',
        'the statuses',
      )
      return tally(answers)
    },
  )
}

/** Many at once while pricing is slower than any budget: nobody gets an order, and nobody meets a fault. */
export async function slowStorms(bench: Bench): Promise<void> {
  const { trial, pricing, server, admin } = bench
  for (const round of ['first', 'second']) {
    await trial.check(
      `180 in parallel while pricing takes 300 ms, ${round} round: not one fault`,
      async () => {
        pricing.behaviour = { kind: 'answer', delayMs: 300 }
        const answers = await released(trial, server.port, 180, freshKey)
        answers.forEach(refused)
        return tally(answers)
      },
    )
  }

  await trial.check('after both rounds nothing is in flight and no error was ours', async () => {
    const metrics = await idle(admin)
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    same(metrics.sum('punctual_requests_total', { status: '201' }), 0, 'orders')
    return '0'
  })

  await trial.check('after both rounds orders are made again', async () => {
    pricing.behaviour = { kind: 'answer' }
    await recovered(bench)
  })
}

/** The promises are about a running instance: the first requests of a process run code that is not compiled yet. */
async function warmUp({ api }: Bench): Promise<void> {
  for (let round = 0; round < 50; round++) {
    await Promise.all(Array.from({ length: 4 }, () => api.order(freshKey(), sampleOrder())))
  }
}

/**
 * Releases up to three storms until one ends with each of the expected statuses and no other. Where the machine
 * itself stalls, a storm runs out of budget: then 429, 503 and 504 are true answers, and anything else never is.
 */
async function calm(
  bench: Bench,
  expected: readonly number[],
  release: () => Promise<Answer[]>,
): Promise<string> {
  const seen: string[] = []
  while (seen.length < STORMS) {
    const answers = await release()
    for (const answer of answers) if (answer.status !== 201) refused(answer)
    seen.push(tally(answers))
    const statuses = new Set(answers.map(answer => answer.status))
    if (statuses.symmetricDifference(new Set(expected)).size === 0) return seen.join('; then ')
    await idle(bench.admin)
    await recovered(bench)
  }
  throw new Error(`expected a storm with only ${expected.join(' and ')}, saw ${seen.join('; then ')}`)
}

/** One of the three ways in which a request may be turned away under load. */
function refused(answer: Answer): void {
  if (answer.status === 429) problem(answer, 429, 'concurrency-limit')
  else if (answer.status === 503) problem(answer, 503, 'pricing-unavailable')
  else same(problem(answer, 504, 'budget-exhausted').committed, 'no', 'committed')
}

/** Orders are made again; a breaker that has opened lets them through only after a while. */
async function recovered({ api }: Bench): Promise<void> {
  await until('an order', async () => (await api.order(freshKey(), sampleOrder())).status === 201, 10_000)
}

/** Releases `count` orders together. */
function released(
  trial: Trial,
  port: number,
  count: number,
  key: () => string,
  body?: string,
): Promise<Answer[]> {
  const bytes = () => orderBytes(key(), body ?? JSON.stringify(sampleOrder()))
  return together(trial, port, Array.from({ length: count }, bytes))
}
