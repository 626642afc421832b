import { rm } from 'node:fs/promises'
import { type Answer, jsonOf, tally } from '../../support/answer.ts'
import { WIDE_BUDGETS } from '../../support/bench.ts'
import { between, created, demand, same, status } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { later } from '../../support/later.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'
import { type Json, temporaryFolder } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

const IN_FLIGHT = 20
// Long enough to look at readiness while the listener is still open.
const CONFIG: Json = { ...WIDE_BUDGETS, lifecycle: { unreadyDelayMs: 300 } }

/** SIGTERM: whoever is in flight is answered, whoever is new is told, and what was acknowledged is there again. */
export async function drain(trial: Trial): Promise<void> {
  const folder = await temporaryFolder()
  trial.own(() => rm(folder, { recursive: true }))
  const pricing = await trial.pricing()
  const options = { pricingUrl: pricing.url, config: CONFIG, folder }
  const server = await trial.server(options)
  const api = trial.client(server.port, KEYS.full)
  const admin = trial.watcher(server.adminPort)

  const orders = Array.from({ length: IN_FLIGHT }, () => ({ key: freshKey(), request: sampleOrder() }))
  let answers: Answer[] = []

  await trial.check('before SIGTERM it is ready', async () => {
    const answer = await api.get('/health/ready')
    status(answer, 200)
    same(jsonOf(answer).status, 'ready', 'status')
  })

  pricing.behaviour = { kind: 'hold' }
  const pending = later(Promise.all(orders.map(({ key, request }) => api.order(key, request))))
  await until('all requests to be in flight', async () => {
    const metrics = await Metrics.read(admin)
    return metrics.sum('punctual_admission_in_flight') === IN_FLIGHT && pricing.calls.length > 0
  })
  // Two sockets that never say anything must not hold the exit up.
  await trial.connect(server.port)
  await trial.connect(server.port)
  const silent = await trial.connect(server.port)
  silent.send('POST /v1/orders HTTP/1.1\r\nhost:')
  server.signal('SIGTERM')

  await trial.check('after SIGTERM readiness is 503 draining at once, liveness stays', async () => {
    const answer = await until(
      'readiness to be 503',
      async () => {
        const answer = await api.get('/health/ready')
        return answer.status === 503 && answer
      },
      200,
    )
    same(jsonOf(answer).status, 'draining', 'status')
    same(answer.headers.connection, 'close', 'Connection')
    status(await api.get('/health/live'), 200)
  })

  await trial.check('while it is only unready, a new request is served and asked to leave', async () => {
    const answer = await api.get('/v1/orders/01920000-0000-7000-8000-000000000000')
    status(answer, 404)
    same(answer.headers.connection, 'close', 'Connection')
  })

  await trial.check('every request in flight is answered, and its connection closed behind it', async () => {
    const listenerClosed = until('the listener to close', () => refuses(trial, server.port), 5_000)
    await listenerClosed
    demand(!server.exited, 'the process still there, for those in flight')
    pricing.release()
    answers = await pending
    for (const answer of answers) {
      created(answer)
      same(answer.headers.connection, 'close', 'Connection')
    }
    return tally(answers)
  })

  await trial.check('then it exits with 0, soon, whoever stays connected', async () => {
    const startedMs = performance.now()
    const code = await server.exit(5_000)
    same(code, 0, 'the exit code')
    between(performance.now() - startedMs, 0, 2_000, 'the time to the exit, in ms,')
    return `exit ${code} after ${Math.round(performance.now() - startedMs)} ms`
  })

  await trial.check('its successor on the same store gives every answer again', async () => {
    const next = await trial.server(options)
    const again = trial.client(next.port, KEYS.full)
    for (const [index, { key, request }] of orders.entries()) {
      const answer = await again.order(key, request)
      created(answer, true)
      same(answer.body, answers[index]?.body, 'the body')
    }
    return `${IN_FLIGHT} replays`
  })

  await idleExit(trial)
  await secondSignal(trial)
}

async function idleExit(trial: Trial): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    await trial.check(`${signal} while nothing is in flight: exit 0`, async () => {
      const server = await trial.server({ config: { lifecycle: { unreadyDelayMs: 0 } } })
      const startedMs = performance.now()
      server.signal(signal)
      same(await server.exit(5_000), 0, 'the exit code')
      between(performance.now() - startedMs, 0, 2_000, 'the time to the exit, in ms,')
      return 'exit 0'
    })
  }
}

async function secondSignal(trial: Trial): Promise<void> {
  await trial.check('a second signal ends it at once', async () => {
    const server = await trial.server({ config: { lifecycle: { unreadyDelayMs: 20_000 } } })
    const nobody = trial.client(server.port)
    server.signal('SIGTERM')
    await until('readiness to be 503', async () => (await nobody.get('/health/ready')).status === 503)
    server.signal('SIGTERM')
    const startedMs = performance.now()
    const code = await server.exit(5_000)
    same(code, 1, 'the exit code')
    between(performance.now() - startedMs, 0, 500, 'the time to the exit, in ms,')
    return `exit ${code}`
  })
}

/** True once nobody listens on the port any more. */
async function refuses(trial: Trial, port: number): Promise<boolean> {
  try {
    const connection = await trial.connect(port)
    connection.destroy()
    return false
  } catch {
    return true
  }
}
