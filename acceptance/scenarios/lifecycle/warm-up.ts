import { rm } from 'node:fs/promises'
import Database from 'better-sqlite3'
import { type Answer, jsonOf } from '../../support/answer.ts'
import { between, created, demand, matches, problem, same, status } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'
import { type Server, temporaryFolder } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

/** What a warm-up must not have moved. */
const COUNTED = [
  'punctual_requests_total',
  'punctual_request_duration_seconds_count',
  'punctual_outbound_calls_total',
  'punctual_outbound_attempts_total',
  'punctual_idempotency_total',
  'punctual_store_commit_seconds_count',
  'punctual_cache_requests_total',
  'punctual_cache_loads_total',
  'punctual_outbox_delivered_total',
  'punctual_outbox_backlog',
]

/** Before it is ready: it proves that it works, serves nobody, and leaves nothing. */
export async function warmUp(trial: Trial): Promise<void> {
  await traces(trial)
  await failingPricing(trial)
  await lockedStore(trial)
  await slowPricing(trial)
  await interrupted(trial)
  await leaving(trial)
}

async function traces(trial: Trial): Promise<void> {
  await trial.check('a warm-up calls pricing, and leaves no order, event, key or count', async () => {
    const pricing = await trial.pricing()
    const server = await trial.server({ pricingUrl: pricing.url })
    demand(pricing.total > 0, 'calls to pricing')
    const called = pricing.total
    const metrics = await Metrics.read(trial.watcher(server.adminPort))
    for (const name of COUNTED) same(metrics.sum(name), 0, name)
    same(metrics.sum('punctual_ready'), 1, 'punctual_ready')
    demand(metrics.sum('punctual_phase_seconds', { phase: 'warming' }) > 0, 'the time that it took')
    const store = new Database(server.storePath, { readonly: true })
    const rows = ['orders', 'idempotency', 'outbox'].map(table =>
      store.prepare(`SELECT count(*) FROM ${table}`).pluck().get(),
    )
    store.close()
    same(rows.join(), '0,0,0', 'the rows of orders, keys and events')
    const order = await trial.client(server.port, KEYS.full).order(freshKey(), sampleOrder())
    created(order)
    return `${called} calls to pricing`
  })
}

async function failingPricing(trial: Trial): Promise<void> {
  const pricing = await trial.pricing()
  pricing.behaviour = { kind: 'say', status: 500, body: '{}' }
  const server = await trial.server({ pricingUrl: pricing.url, until: 'listening' })
  const api = trial.client(server.port, KEYS.full)

  await trial.check(
    'while pricing fails at the start it is unready and says why, alive, and serves nobody',
    async () => {
      const { checks } = await unready(trial, server)
      matches(checks.warmUp, /^an order: pricing-unavailable$/, 'checks.warmUp')
      same(checks.store, 'ok', 'checks.store')
      status(await api.get('/health/live'), 200)
      const refused = await api.order(freshKey(), sampleOrder())
      problem(refused, 503, 'warming-up')
      between(Number(refused.headers['retry-after']), 1, 60, 'Retry-After')
      const metrics = await Metrics.read(trial.watcher(server.adminPort))
      same(metrics.sum('punctual_ready'), 0, 'punctual_ready')
      same(metrics.sum('punctual_requests_total'), 1, 'the requests counted')
      demand(!server.exited, 'the process still there')
      const told = server.lines.filter(line => line.includes('"msg":"warm-up failed"'))
      same(told.length, 1, 'the lines about it, however often it is tried')
    },
  )

  await trial.check('it turns ready once pricing is well', async () => {
    pricing.behaviour = { kind: 'answer' }
    const answer = await until(
      'readiness to be 200',
      async () => {
        const answer = await api.get('/health/ready')
        return answer.status === 200 && answer
      },
      5_000,
    )
    same(jsonOf(answer).status, 'ready', 'status')
    same(jsonOf(answer).phase, 'ready', 'phase')
    created(await api.order(freshKey(), sampleOrder()))
    same(await server.stop(), 0, 'the exit code')
  })
}

async function lockedStore(trial: Trial): Promise<void> {
  for (const [what, sql] of [
    ['a new store', 'BEGIN EXCLUSIVE'],
    ['the store', 'BEGIN IMMEDIATE'],
  ] as const) {
    await trial.check(
      `while another process holds ${what} locked at the start it waits, and turns ready`,
      async () => {
        const folder = await temporaryFolder()
        trial.own(() => rm(folder, { recursive: true }))
        if (what === 'the store') await (await trial.server({ folder })).stop()
        const lock = new Database(`${folder}/store.db`)
        trial.own(() => void lock.close())
        lock.exec(sql)
        const pricing = await trial.pricing()
        const server = await trial.server({ pricingUrl: pricing.url, folder, until: 'listening' })
        await unready(trial, server)
        demand(!server.exited, 'the process still there')
        lock.exec('ROLLBACK')
        const api = trial.client(server.port, KEYS.full)
        await until(
          'readiness to be 200',
          async () => (await api.get('/health/ready')).status === 200,
          10_000,
        )
        created(await api.order(freshKey(), sampleOrder()))
        same(await server.stop(), 0, 'the exit code')
        return 'ready'
      },
    )
  }
}

async function slowPricing(trial: Trial): Promise<void> {
  await trial.check('pricing that is slow at the start is no reason to stay away', async () => {
    const pricing = await trial.pricing()
    pricing.behaviour = { kind: 'answer', delayMs: 300 }
    const server = await trial.server({ pricingUrl: pricing.url })
    const api = trial.client(server.port, KEYS.full)
    problem(await api.order(freshKey(), sampleOrder()), 504, 'budget-exhausted')
  })
}

async function interrupted(trial: Trial): Promise<void> {
  for (const kind of ['hold', 'reset'] as const) {
    await trial.check(
      `SIGTERM during the warm-up, with pricing that does ${kind}: exit 0, never ready`,
      async () => {
        const pricing = await trial.pricing()
        pricing.behaviour = { kind }
        const config = { lifecycle: { unreadyDelayMs: 0 } }
        const server = await trial.server({ pricingUrl: pricing.url, config, until: 'listening' })
        server.signal('SIGTERM')
        const startedMs = performance.now()
        same(await server.exit(5_000), 0, 'the exit code')
        between(performance.now() - startedMs, 0, 1_000, 'the time to the exit, in ms,')
        demand(!server.lines.some(line => line.includes('"msg":"ready"')), 'no word of being ready')
        return `exit 0 after ${Math.round(performance.now() - startedMs)} ms`
      },
    )
  }
}

async function leaving(trial: Trial): Promise<void> {
  await trial.check('SIGTERM before it was ever ready: nobody is taken in while it leaves', async () => {
    const pricing = await trial.pricing()
    pricing.behaviour = { kind: 'say', status: 500, body: '{}' }
    const config = { lifecycle: { unreadyDelayMs: 500 } }
    const server = await trial.server({ pricingUrl: pricing.url, config, until: 'listening' })
    const api = trial.client(server.port, KEYS.full)
    await unready(trial, server)
    server.signal('SIGTERM')
    const phase = async () => jsonOf(await api.get('/health/ready')).phase
    await until('the drain to begin', async () => (await phase()) === 'draining')
    problem(await api.order(freshKey(), sampleOrder()), 503, 'shutting-down')
    same(await server.exit(), 0, 'the exit code')
  })
}

/** What readiness says once a first try has failed, and why. */
async function unready(trial: Trial, server: Server): Promise<{ checks: Record<string, string> }> {
  const nobody = trial.client(server.port)
  let answer: Answer | undefined
  const body = await until('a warm-up that has failed', async () => {
    answer = await nobody.get('/health/ready')
    const body = jsonOf(answer) as { checks: Record<string, string> }
    return body.checks.warmUp !== 'has not passed yet' && body
  })
  if (answer) status(answer, 503)
  same((body as { status?: string }).status, 'warming', 'status')
  same((body as { phase?: string }).phase, 'warming', 'phase')
  return body
}
