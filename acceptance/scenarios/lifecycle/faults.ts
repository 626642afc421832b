import { type Answer, jsonOf, tally } from '../../support/answer.ts'
import { WIDE_BUDGETS } from '../../support/bench.ts'
import { between, created, demand, same } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { later } from '../../support/later.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

const SABOTEUR = new URL('../../support/saboteur.ts', import.meta.url).href

/** Faults of the process itself. */
export async function faults(trial: Trial): Promise<void> {
  for (const [what, sabotage, event] of [
    ['an exception that nobody catches', 'throw', 'uncaughtException'],
    ['a promise that nobody handles', 'reject', 'unhandledRejection'],
  ] as const) {
    await trial.check(`${what}: logged, those in flight are answered, exit 1`, async () => {
      const pricing = await trial.pricing()
      const config = { ...WIDE_BUDGETS, lifecycle: { unreadyDelayMs: 100 } }
      const server = await trial.server({ pricingUrl: pricing.url, config, env: sabotaged(sabotage) })
      const api = trial.client(server.port, KEYS.full)
      pricing.behaviour = { kind: 'hold' }
      const pending = later(Promise.all([1, 2, 3].map(() => api.order(freshKey(), sampleOrder()))))
      await pricing.called(1)
      server.signal('SIGUSR2')
      await until('readiness to be 503', async () => (await api.get('/health/ready')).status === 503)
      // As a supervisor does that is told of it: the first signal lets the drain go on.
      server.signal('SIGTERM')
      await until('the signal', () => server.lines.some(line => line.includes('"msg":"stopping"')))
      pricing.release()
      for (const answer of await pending) created(answer)
      same(await server.exit(5_000), 1, 'the exit code')
      const fatal = server.lines.filter(line => line.includes(`"msg":"${event}"`))
      same(fatal.length, 1, 'the lines about it')
      demand(String(fatal[0]).includes('sabotage'), `its message in the log, saw ${fatal[0]}`)
      return 'exit 1'
    })
  }
  await deadWriter(trial)
}

async function deadWriter(trial: Trial): Promise<void> {
  const pricing = await trial.pricing()
  const server = await trial.server({ pricingUrl: pricing.url, env: sabotaged('writer') })
  const api = trial.client(server.port, KEYS.full)
  const orders = Array.from({ length: 40 }, () => ({ key: freshKey(), request: sampleOrder() }))
  let answers: Answer[] = []

  await trial.check('when the writer thread dies, everyone in flight is told what is known', async () => {
    created(await api.order(freshKey(), sampleOrder()))
    const pending = later(Promise.all(orders.map(({ key, request }) => api.order(key, request))))
    server.signal('SIGUSR2')
    answers = await pending
    for (const answer of answers) {
      demand([201, 503, 504].includes(answer.status), `201, 503 or 504, saw ${answer.status}`)
      if (answer.status === 504) {
        const { committed } = jsonOf(answer)
        demand(committed === 'no' || committed === 'unknown', `committed no or unknown, saw ${committed}`)
      }
    }
    return tally(answers)
  })

  await trial.check('it is started again: ready, and each key does what it was for, once', async () => {
    const startedMs = performance.now()
    await until('readiness to be 200', async () => (await api.get('/health/ready')).status === 200)
    const afterMs = performance.now() - startedMs
    demand(
      server.lines.some(line => line.includes('"msg":"store degraded"')),
      'a word of it in the log',
    )
    for (const [place, { key, request }] of orders.entries()) {
      const again = await api.order(key, request)
      same(again.status, 201, 'status')
      if (answers[place]?.status === 201) same(again.body, answers[place]?.body, 'the body')
    }
    between(afterMs, 0, 2_000, 'the time until it was ready again, in ms,')
    same(await server.stop(), 0, 'the exit code')
    return `ready after ${Math.round(afterMs)} ms`
  })
}

function sabotaged(what: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=${SABOTEUR}`, SABOTAGE: what }
}
