import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type CacheGauges, cacheMetrics } from './cache-metrics.ts'
import type { Channels } from './channels.ts'
import { readGauge } from './read-gauge.ts'

export interface OutboxGauges {
  readonly backlog: { readonly pending: number; readonly dead: number }
  readonly oldestAgeSeconds: number
}

/** What is read at the moment of a scrape. */
export interface Gauges {
  readonly inFlight: () => number
  readonly cache: CacheGauges
  readonly outbox: OutboxGauges
  readonly ready: () => boolean
}

/** Prometheus metrics over the channels, under the names of the contract. One registry per instance of the app. */
export function createMetrics(channels: Channels, gauges: Gauges): Registry {
  const registry = new Registry()
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = (name: string, help: string, read: () => number) => readGauge(registry, name, help, read)
  const histogram = (name: string, help: string, buckets: number[], labelNames: string[] = []) =>
    new Histogram({ name, help, buckets, labelNames, registers })

  const requests = counter('punctual_requests_total', 'Requests that ended.', ['route', 'status', 'outcome'])
  const duration = histogram(
    'punctual_request_duration_seconds',
    'From arrival, hidden wait included, to the end of the response.',
    DURATION_BUCKETS,
    ['route', 'outcome'],
  )
  const uncontrolled = counter('punctual_uncontrolled_errors_total', 'Requests answered with 500.')
  const exhausted = counter('punctual_budget_exhausted_total', 'Requests whose budget ran out.', ['stage'])
  const unavailable = counter(
    'punctual_downstream_unavailable_total',
    'Requests refused because pricing was down.',
  )
  channels.http.ended.subscribe(({ route, status, outcome, durationMs, code, stage }) => {
    requests.inc({ route, status, outcome })
    if (durationMs !== undefined) duration.observe({ route, outcome }, durationMs / 1000)
    if (outcome === 'uncontrolled') uncontrolled.inc()
    if (code === 'budget-exhausted') exhausted.inc({ stage: stage ?? 'unknown' })
    if (code === 'pricing-unavailable') unavailable.inc()
  })

  const rejected = counter('punctual_admission_rejected_total', 'Requests refused at the gate.', ['scope'])
  channels.admission.rejected.subscribe(({ scope }) => rejected.inc({ scope }))
  gauge('punctual_admission_in_flight', 'Permits held.', gauges.inFlight)

  const late = counter('punctual_late_outcomes_total', 'Outcomes that came after another had won.', ['kind'])
  for (const channel of [channels.lease.late, channels.outbound.late, channels.store.late]) {
    channel.subscribe(({ kind }) => late.inc({ kind }))
  }
  const hiddenWait = histogram(
    'punctual_lease_hidden_wait_seconds',
    'Wait before the loop saw a request, where there was any.',
    DURATION_BUCKETS,
  )
  channels.lease.hiddenWait.subscribe(({ waitMs }) => hiddenWait.observe(waitMs / 1000))
  let worstLagMs = 0
  channels.lease.loopLag.subscribe(({ lagMs }) => {
    worstLagMs = Math.max(worstLagMs, lagMs)
  })
  gauge('punctual_event_loop_lag_seconds', 'The worst lateness of the loop since the last scrape.', () => {
    const lagMs = worstLagMs
    worstLagMs = 0
    return lagMs / 1000
  })

  const attempts = counter('punctual_outbound_attempts_total', 'Attempts on pricing, by how they ended.', [
    'result',
  ])
  channels.outbound.attempt.subscribe(({ result }) => attempts.inc({ result }))
  const retries = counter('punctual_outbound_retries_total', 'Attempts that followed a failed one.')
  channels.outbound.retry.subscribe(() => retries.inc())
  const hedges = counter('punctual_outbound_hedges_total', 'Second attempts, by how they ended.', ['result'])
  channels.outbound.hedge.subscribe(({ result }) => hedges.inc({ result }))
  const outboundBatch = histogram(
    'punctual_outbound_batch_size',
    'SKUs in a request to pricing.',
    BATCH_BUCKETS,
  )
  channels.outbound.batch.subscribe(({ size }) => outboundBatch.observe(size))
  const fallbacks = counter('punctual_fallback_served_total', 'Calls that remembered prices answered.')
  channels.outbound.fallback.subscribe(() => fallbacks.inc())
  const calls = counter('punctual_outbound_calls_total', 'Calls to pricing, by how they ended.', ['result'])
  channels.outbound.call.subscribe(({ result }) => calls.inc({ result }))
  const breaker = new Gauge({
    name: 'punctual_outbound_breaker_state',
    help: 'Breaker before pricing: 0 closed, 1 half-open, 2 open.',
    registers,
  })
  breaker.set(0)
  channels.outbound.breaker.subscribe(({ state }) =>
    breaker.set({ closed: 0, 'half-open': 1, open: 2 }[state]),
  )

  const idempotency = counter('punctual_idempotency_total', 'What idempotency keys turned out to be.', [
    'result',
  ])
  channels.idempotency.decided.subscribe(({ result }) => idempotency.inc({ result }))

  const commit = histogram(
    'punctual_store_commit_seconds',
    'A group commit, from sending to verdict.',
    COMMIT_BUCKETS,
  )
  const batch = histogram('punctual_store_commit_batch_size', 'Writes in a group commit.', BATCH_BUCKETS)
  channels.store.committed.subscribe(({ durationMs, batchSize }) => {
    commit.observe(durationMs / 1000)
    batch.observe(batchSize)
  })

  cacheMetrics(registry, gauges.cache)

  const delivered = counter('punctual_outbox_delivered_total', 'Events that a consumer has taken.')
  channels.outbox.delivered.subscribe(() => delivered.inc())
  const failed = counter('punctual_outbox_failed_total', 'Deliveries that failed.')
  channels.outbox.failed.subscribe(() => failed.inc())
  gauge(
    'punctual_outbox_backlog',
    'Events that wait for their delivery.',
    () => gauges.outbox.backlog.pending,
  )
  gauge('punctual_outbox_dead', 'Events that were given up on.', () => gauges.outbox.backlog.dead)
  gauge(
    'punctual_outbox_oldest_age_seconds',
    'Age of the oldest event that waits.',
    () => gauges.outbox.oldestAgeSeconds,
  )

  gauge('punctual_ready', '1 while this instance asks for traffic.', () => (gauges.ready() ? 1 : 0))
  const phases = new Gauge({
    name: 'punctual_phase_seconds',
    help: 'How long each finished phase took.',
    labelNames: ['phase'],
    registers,
  })
  channels.lifecycle.phase.subscribe(({ phase, durationMs }) => phases.set({ phase }, durationMs / 1000))
  const dropped = counter('punctual_drain_dropped_total', 'Requests cut off by a drain.')
  channels.lifecycle.drained.subscribe(message => dropped.inc(message.dropped))
  return registry
}

// Around the budgets: attempt 40, total 110, lease 150, request 200, and the grace after it.
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.11, 0.15, 0.2, 0.25, 0.5, 1]
const COMMIT_BUCKETS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25]
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
