import { DEMO_KEY_SHA256 } from '../http/options.ts'
import { longestBackoffMs } from '../outbound/index.ts'
import type { Config } from './schema.ts'

/**
 * What the numbers owe each other. Each rule has a name and says what is wrong with the values it saw, or
 * nothing. All rules are asked every time, so that all violations are listed at once.
 */
export interface Constraint {
  readonly name: string
  /** What must hold, for the reference page. */
  readonly rule: string
  readonly violation: (config: Config, env: { production: boolean }) => string | undefined
}

export const CONSTRAINTS: readonly Constraint[] = [
  {
    name: 'budgets-decrease',
    rule: '`deadline.requestBudgetMs` > `outbound.leaseMs` > `outbound.totalMs` > `outbound.attemptMs`',
    violation: ({ deadline, outbound }) => {
      const { leaseMs, totalMs, attemptMs } = outbound
      if (deadline.requestBudgetMs > leaseMs && leaseMs > totalMs && totalMs > attemptMs) return undefined
      return (
        'deadline.requestBudgetMs > outbound.leaseMs > outbound.totalMs > outbound.attemptMs does not hold: ' +
        `${deadline.requestBudgetMs} > ${leaseMs} > ${totalMs} > ${attemptMs}`
      )
    },
  },
  {
    name: 'total-holds-all-attempts',
    rule: '`outbound.totalMs` ≥ (`retryMaxAttempts` + 1) × `attemptMs` + the longest possible back-off',
    violation: ({ outbound }) => {
      const attempts = outbound.retryMaxAttempts + 1
      const neededMs = attempts * outbound.attemptMs + longestBackoffMs(outbound)
      if (outbound.totalMs >= neededMs) return undefined
      return `outbound.totalMs is ${outbound.totalMs}, but ${attempts} attempts and the longest back-off take ${neededMs}`
    },
  },
  {
    name: 'lease-leaves-commit-reserve',
    rule: '`outbound.leaseMs` + `deadline.commitReserveMs` ≤ `deadline.requestBudgetMs`',
    violation: ({ deadline, outbound }) => {
      if (outbound.leaseMs + deadline.commitReserveMs <= deadline.requestBudgetMs) return undefined
      return (
        'outbound.leaseMs + deadline.commitReserveMs exceed deadline.requestBudgetMs: ' +
        `${outbound.leaseMs} + ${deadline.commitReserveMs} > ${deadline.requestBudgetMs}`
      )
    },
  },
  {
    name: 'breaker-samples-attempts',
    rule: '`outbound.breaker.samplingSeconds` × 1000 ≥ 2 × `outbound.attemptMs`',
    violation: ({ outbound }) => {
      const windowMs = outbound.breaker.samplingSeconds * 1000
      if (windowMs >= 2 * outbound.attemptMs) return undefined
      return `outbound.breaker.samplingSeconds is ${windowMs} ms, less than two attempts of ${outbound.attemptMs} ms`
    },
  },
  {
    name: 'hedge-within-attempt',
    rule: '`outbound.hedge.minDelayMs` < `outbound.attemptMs`',
    violation: ({ outbound }) => {
      if (outbound.hedge.minDelayMs < outbound.attemptMs) return undefined
      return `outbound.hedge.minDelayMs (${outbound.hedge.minDelayMs}) must be below outbound.attemptMs (${outbound.attemptMs})`
    },
  },
  {
    name: 'batch-window-within-attempt',
    rule: '`outbound.batch.windowMs` < `outbound.attemptMs`',
    violation: ({ outbound }) => {
      if (outbound.batch.windowMs < outbound.attemptMs) return undefined
      return `outbound.batch.windowMs (${outbound.batch.windowMs}) must be below outbound.attemptMs (${outbound.attemptMs})`
    },
  },
  {
    name: 'permits-carry-target',
    rule: '`capacity.maxConcurrent` ≥ ⌈`targetRps` × `saturatedLatencyMs` / 1000⌉ + `queueSlots`',
    violation: ({ capacity }) => {
      const { targetRps, saturatedLatencyMs, queueSlots, maxConcurrent } = capacity
      const needed = Math.ceil((targetRps * saturatedLatencyMs) / 1000) + queueSlots
      if (maxConcurrent >= needed) return undefined
      return (
        `capacity.maxConcurrent is ${maxConcurrent}, but ${targetRps} requests/s at ${saturatedLatencyMs} ms ` +
        `with ${queueSlots} spare places need ${needed}`
      )
    },
  },
  {
    name: 'busy-timeout-within-budget',
    rule: '`store.sqlite.busyTimeoutMs` < `deadline.requestBudgetMs`',
    violation: ({ store, deadline }) => {
      if (store.sqlite.busyTimeoutMs < deadline.requestBudgetMs) return undefined
      return (
        `store.sqlite.busyTimeoutMs (${store.sqlite.busyTimeoutMs}) must be below ` +
        `deadline.requestBudgetMs (${deadline.requestBudgetMs})`
      )
    },
  },
  {
    name: 'cache-tiers-outlive-each-other',
    rule: '`cache.l2Minutes` × 60 > `cache.l1Seconds` > `cache.negativeSeconds`',
    violation: ({ cache }) => {
      const { l2Minutes, l1Seconds, negativeSeconds } = cache
      if (l2Minutes * 60 > l1Seconds && l1Seconds > negativeSeconds) return undefined
      return (
        'cache.l2Minutes × 60 > cache.l1Seconds > cache.negativeSeconds does not hold: ' +
        `${l2Minutes * 60} > ${l1Seconds} > ${negativeSeconds}`
      )
    },
  },
  {
    name: 'query-within-load',
    rule: '`cache.queryTimeoutMs` < `cache.loadTimeoutMs`',
    violation: ({ cache: { queryTimeoutMs, loadTimeoutMs } }) => {
      if (queryTimeoutMs < loadTimeoutMs) return undefined
      return `cache.queryTimeoutMs (${queryTimeoutMs}) must be below cache.loadTimeoutMs (${loadTimeoutMs})`
    },
  },
  {
    name: 'wait-within-budget',
    rule: '`cache.waitTimeoutMs` < `deadline.requestBudgetMs`',
    violation: ({ cache: { waitTimeoutMs }, deadline: { requestBudgetMs } }) => {
      if (waitTimeoutMs < requestBudgetMs) return undefined
      return `cache.waitTimeoutMs (${waitTimeoutMs}) must be below deadline.requestBudgetMs (${requestBudgetMs})`
    },
  },
  {
    name: 'drain-within-shutdown',
    rule: '`lifecycle.drainSeconds` < `lifecycle.shutdownTimeoutSeconds`',
    violation: ({ lifecycle }) => {
      const { drainSeconds, shutdownTimeoutSeconds } = lifecycle
      if (drainSeconds < shutdownTimeoutSeconds) return undefined
      return `lifecycle.drainSeconds (${drainSeconds}) must be below lifecycle.shutdownTimeoutSeconds (${shutdownTimeoutSeconds})`
    },
  },
  {
    name: 'drain-within-supervisor-grace',
    rule: '`lifecycle.drainSeconds` < 25',
    violation: ({ lifecycle }) => {
      if (lifecycle.drainSeconds < 25) return undefined
      return `lifecycle.drainSeconds (${lifecycle.drainSeconds}) must be below 25, or a supervisor with 30 s of grace kills first`
    },
  },
  {
    name: 'headers-within-request',
    rule: '`http.headersTimeoutMs` ≤ `http.requestTimeoutMs`',
    violation: ({ http }) => {
      if (http.headersTimeoutMs <= http.requestTimeoutMs) return undefined
      return `http.headersTimeoutMs (${http.headersTimeoutMs}) must not exceed http.requestTimeoutMs (${http.requestTimeoutMs})`
    },
  },
  {
    name: 'budget-within-request-timeout',
    rule: '`deadline.requestBudgetMs` < `http.requestTimeoutMs`',
    violation: ({ http, deadline }) => {
      if (deadline.requestBudgetMs < http.requestTimeoutMs) return undefined
      return `http.requestTimeoutMs (${http.requestTimeoutMs}) must exceed deadline.requestBudgetMs (${deadline.requestBudgetMs})`
    },
  },
  {
    name: 'outbox-carries-target',
    rule: '`outbox.batchSize` × 1000 / `outbox.pollIntervalMs` ≥ 2 × `capacity.targetRps`',
    violation: ({ outbox, capacity }) => {
      const perSecond = (outbox.batchSize * 1000) / outbox.pollIntervalMs
      if (perSecond >= 2 * capacity.targetRps) return undefined
      return (
        `outbox.batchSize (${outbox.batchSize}) in outbox.pollIntervalMs (${outbox.pollIntervalMs}) is ` +
        `${perSecond} events/s, less than twice capacity.targetRps (${capacity.targetRps})`
      )
    },
  },
  {
    name: 'delivery-within-lease',
    rule: '`outbox.webhook.timeoutMs` × 2 ≤ `outbox.leaseMs`',
    violation: ({ outbox: { webhook, leaseMs } }) => {
      if (webhook.timeoutMs * 2 <= leaseMs) return undefined
      return `outbox.webhook.timeoutMs (${webhook.timeoutMs}) must not exceed half of outbox.leaseMs (${leaseMs})`
    },
  },
  {
    name: 'retry-delays-ordered',
    rule: '`outbox.retryDelayMs` ≤ `outbox.retryMaxDelayMs`',
    violation: ({ outbox: { retryDelayMs, retryMaxDelayMs } }) => {
      if (retryDelayMs <= retryMaxDelayMs) return undefined
      return `outbox.retryDelayMs (${retryDelayMs}) must not exceed outbox.retryMaxDelayMs (${retryMaxDelayMs})`
    },
  },
  {
    name: 'webhook-complete',
    rule: 'the sink `webhook` needs `outbox.webhook.url` and `outbox.webhook.secret`',
    violation: ({ outbox: { sink, webhook } }) => {
      if (sink !== 'webhook' || (webhook.url !== '' && webhook.secret !== '')) return undefined
      return 'outbox.sink is webhook, which needs outbox.webhook.url and outbox.webhook.secret'
    },
  },
  {
    name: 'plain-webhook-stays-on-loopback',
    rule: 'a plain-HTTP webhook needs a loopback `http.host`, and anything but `NODE_ENV=production`',
    violation: ({ http, outbox }, { production }) => {
      if (outbox.sink !== 'webhook' || !/^http:/i.test(outbox.webhook.url)) return undefined
      if (production)
        return 'outbox.webhook.url is plain HTTP, which must not be used with NODE_ENV=production'
      if (!isLoopback(http.host))
        return `outbox.webhook.url is plain HTTP, but http.host (${http.host}) is not loopback`
      return undefined
    },
  },
  {
    name: 'api-keys-distinct',
    rule: 'no `id` and no `sha256` of `auth.keys` stands twice',
    violation: ({ auth }) => {
      const distinct = (values: string[]) => new Set(values).size === values.length
      const ids = auth.keys.map(key => key.id)
      const digests = auth.keys.map(key => key.sha256)
      return distinct(ids) && distinct(digests) ? undefined : 'auth.keys holds an id or a sha256 twice'
    },
  },
  {
    name: 'demo-key-stays-on-loopback',
    rule: 'the demo key needs a loopback `http.host`, and anything but `NODE_ENV=production`',
    violation: ({ http, auth }, { production }) => {
      if (!auth.keys.some(key => key.sha256 === DEMO_KEY_SHA256)) return undefined
      if (production) return 'auth.keys holds the demo key, which must not be used with NODE_ENV=production'
      if (!isLoopback(http.host))
        return `auth.keys holds the demo key, but http.host (${http.host}) is not loopback`
      return undefined
    },
  },
  {
    name: 'admin-token-off-loopback',
    rule: 'an `http.adminHost` off loopback needs `http.adminToken`',
    violation: ({ http }) => {
      if (isLoopback(http.adminHost) || http.adminToken !== undefined) return undefined
      return `http.adminHost (${http.adminHost}) is not loopback, which needs http.adminToken (ADMIN_TOKEN)`
    },
  },
]

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}
