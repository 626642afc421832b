import { jsonOf } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { demand, matches, same, status } from '../../support/expect.ts'
import { KEY_ENTRIES, KEYS } from '../../support/keys.ts'
import { Metrics } from '../../support/metrics.ts'

// The metrics of the contract: each must be there, and no other `punctual_` name may be.
const PRESENT = [
  'punctual_requests_total',
  'punctual_request_duration_seconds',
  'punctual_uncontrolled_errors_total',
  'punctual_admission_in_flight',
  'punctual_admission_rejected_total',
  'punctual_budget_exhausted_total',
  'punctual_lease_hidden_wait_seconds',
  'punctual_late_outcomes_total',
  'punctual_event_loop_lag_seconds',
  'punctual_outbound_attempts_total',
  'punctual_outbound_retries_total',
  'punctual_outbound_hedges_total',
  'punctual_outbound_breaker_state',
  'punctual_outbound_calls_total',
  'punctual_outbound_batch_size',
  'punctual_fallback_served_total',
  'punctual_downstream_unavailable_total',
  'punctual_idempotency_total',
  'punctual_store_commit_seconds',
  'punctual_store_commit_batch_size',
  'punctual_outbox_backlog',
  'punctual_outbox_oldest_age_seconds',
  'punctual_outbox_delivered_total',
  'punctual_outbox_failed_total',
  'punctual_outbox_dead',
  'punctual_cache_requests_total',
  'punctual_cache_loads_total',
  'punctual_cache_flights_total',
  'punctual_cache_wait_timeouts_total',
  'punctual_cache_fills_refused_total',
  'punctual_cache_invalidations_total',
  'punctual_cache_in_flight',
  'punctual_cache_hot_keys',
  'punctual_ready',
  'punctual_phase_seconds',
  'punctual_drain_dropped_total',
]

/** What must hold after any amount of requests: metrics, logs and the admin listener tell the truth and no more. */
export async function soundness({ trial, admin, server }: Bench): Promise<void> {
  await trial.check('the metrics are those of the contract', async () => {
    const answer = await admin.get('/metrics')
    status(answer, 200)
    matches(answer.headers['content-type'], /^text\/plain/, 'Content-Type')
    const names = [...answer.body.matchAll(/^# TYPE (punctual_\w+) /gm)].map(([, name = '']) => name)
    const missing = PRESENT.filter(name => !names.includes(name))
    demand(missing.length === 0, `all metrics, missed ${missing.join(', ')}`)
    const foreign = names.filter(name => !PRESENT.includes(name))
    demand(foreign.length === 0, `no metric beyond the contract, saw ${foreign.join(', ')}`)
    return `${names.length} metrics`
  })

  await trial.check('not one request was an uncontrolled error', async () => {
    const metrics = await Metrics.read(admin)
    same(metrics.sum('punctual_uncontrolled_errors_total'), 0, 'punctual_uncontrolled_errors_total')
    same(metrics.sum('punctual_requests_total', { outcome: 'uncontrolled' }), 0, 'requests uncontrolled')
    return '0'
  })

  await trial.check('labels are templates and known words, never what a client sent', async () => {
    const metrics = await Metrics.read(admin)
    const routes = [...metrics.values('route')]
    for (const route of routes) matches(route, /^(unmatched|(\/[a-z0-9]+|\/\{\w+\}|\/:\w+)+)$/, 'route')
    demand(routes.length <= 12, `a handful of routes, saw ${routes.length}`)
    demand(metrics.sum('punctual_requests_total', { route: 'unmatched' }) > 0, 'unmatched requests counted')
    const outcomes = ['success', 'client_error', 'rejected', 'uncontrolled', 'client_abort']
    for (const outcome of metrics.values('outcome'))
      demand(outcomes.includes(outcome), `no outcome ${outcome}`)
    return routes.join(' ')
  })

  await trial.check('new, replayed and conflicting requests are counted', async () => {
    const metrics = await Metrics.read(admin)
    const count = (result: string) => metrics.sum('punctual_idempotency_total', { result })
    for (const result of ['new', 'replay', 'conflict']) demand(count(result) > 0, `some ${result}, saw none`)
    return `${count('new')} new, ${count('replay')} replayed, ${count('conflict')} in conflict`
  })

  await trial.check('/config on the admin listener hides secrets', async () => {
    const answer = await admin.get('/config')
    status(answer, 200)
    jsonOf(answer)
    for (const { id, sha256 } of KEY_ENTRIES)
      demand(!answer.body.includes(sha256), `no hash of ${id}, saw one`)
    return `${answer.body.length} characters`
  })

  await trial.check('the admin listener answers 404 and 405 like the other', async () => {
    status(await admin.get('/v1/orders'), 404)
    status(await admin.send('DELETE', '/metrics'), 405)
  })

  await trial.check('every log line is JSON, and none holds a key or its hash', async () => {
    for (const line of server.lines) JSON.parse(line)
    const log = server.lines.join('\n')
    for (const key of Object.values(KEYS))
      demand(!log.includes(`${key}"`) && !log.includes(`Bearer ${key}`), `no ${key}`)
    for (const { id, sha256 } of KEY_ENTRIES) demand(!log.includes(sha256), `no hash of ${id} in the log`)
    return `${server.lines.length} lines`
  })
}
