import { demand, same } from '../../support/expect.ts'
import { KEY_ENTRIES } from '../../support/keys.ts'
import { type Json, runToEnd } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { clear, shown } from './ending.ts'

const START_LIMIT_MS = 5_000
const CONFIG_EXIT_CODE = 78

const WEBHOOK = {
  url: 'http://127.0.0.1:9/hook',
  secret: `whsec_${Buffer.alloc(24, 'configuration').toString('base64')}`,
}

/** Configurations that must not be started with, and a word of each violation that must be listed. */
const BROKEN: Record<string, [config: Json, ...named: string[]]> = {
  'an unknown key': [{ http: { porrt: 1 } }, 'http.porrt'],
  'an unknown group': [{ htttp: { port: 1 } }, 'htttp'],
  'a number out of bounds': [{ capacity: { maxConcurrent: 0 } }, 'capacity.maxConcurrent'],
  'a number that is a string': [{ deadline: { requestBudgetMs: '200' } }, 'deadline.requestBudgetMs'],
  'a fraction where a whole number stands': [
    { deadline: { requestBudgetMs: 200.5 } },
    'deadline.requestBudgetMs',
  ],
  'an API key without hash': [
    { auth: { keys: [{ id: 'a', tenant: 'a', scopes: ['orders:read'] }] } },
    'sha256',
  ],
  'an unknown scope': [{ auth: { keys: [{ ...KEY_ENTRIES[0], scopes: ['orders:all'] }] } as Json }, 'scopes'],
  'an outbound lease longer than the request': [
    { outbound: { leaseMs: 500 } },
    'requestBudgetMs > outbound.leaseMs',
    'commitReserveMs',
  ],
  'an attempt longer than all attempts': [{ outbound: { attemptMs: 130 } }, 'attemptMs'],
  'all attempts too short for two and a back-off': [{ outbound: { totalMs: 85 } }, 'outbound.totalMs'],
  'no room for the commit': [{ outbound: { leaseMs: 190 } }, 'commitReserveMs'],
  'a breaker that samples too briefly': [
    {
      deadline: { requestBudgetMs: 9_000 },
      outbound: { leaseMs: 8_000, totalMs: 7_000, attemptMs: 900, breaker: { samplingSeconds: 1 } },
    },
    'samplingSeconds',
  ],
  'fewer permits than the load needs': [{ capacity: { maxConcurrent: 59 } }, 'capacity.maxConcurrent'],
  'a drain longer than the shutdown': [
    { lifecycle: { drainSeconds: 20, shutdownTimeoutSeconds: 20 } },
    'lifecycle.drainSeconds',
  ],
  'a drain longer than a supervisor waits': [
    { lifecycle: { drainSeconds: 25, shutdownTimeoutSeconds: 30 } },
    'lifecycle.drainSeconds',
  ],
  'a busy timeout beyond the budget': [{ store: { sqlite: { busyTimeoutMs: 200 } } }, 'busyTimeoutMs'],
  'a first tier that outlives the second': [
    { cache: { l2Minutes: 1, l1Seconds: 60 } },
    'cache.l2Minutes × 60 > cache.l1Seconds > cache.negativeSeconds',
    '60 > 60 > 2',
  ],
  'absences that outlive what is there': [
    { cache: { l1Seconds: 2, negativeSeconds: 2 } },
    'cache.l2Minutes × 60 > cache.l1Seconds > cache.negativeSeconds',
    '600 > 2 > 2',
  ],
  'a query that may outlast its load': [
    { cache: { queryTimeoutMs: 90, loadTimeoutMs: 90 } },
    'cache.queryTimeoutMs (90)',
    'cache.loadTimeoutMs (90)',
  ],
  'a wait for a load beyond the budget': [
    { cache: { waitTimeoutMs: 200 } },
    'cache.waitTimeoutMs (200)',
    'deadline.requestBudgetMs (200)',
  ],
  'an outbox slower than twice the orders': [
    { outbox: { batchSize: 199 } },
    'outbox.batchSize (199)',
    'capacity.targetRps (1000)',
  ],
  'polls too rare for twice the orders': [
    { outbox: { pollIntervalMs: 101 } },
    'outbox.pollIntervalMs (101)',
    'capacity.targetRps (1000)',
  ],
  'a delivery that may outlast half a claim': [
    { outbox: { leaseMs: 9_999 } },
    'outbox.webhook.timeoutMs (5000)',
    'outbox.leaseMs (9999)',
  ],
  'a first retry later than the last': [
    { outbox: { retryDelayMs: 501, retryMaxDelayMs: 500 } },
    'outbox.retryDelayMs (501)',
  ],
  'an unknown sink': [{ outbox: { sink: 'pigeon' } }, 'outbox.sink'],
  'a webhook without a URL': [
    { outbox: { sink: 'webhook', webhook: { secret: WEBHOOK.secret } } },
    'outbox.webhook.url',
  ],
  'a webhook without a secret': [
    { outbox: { sink: 'webhook', webhook: { url: WEBHOOK.url } } },
    'outbox.webhook.secret',
  ],
  'a webhook URL that is none of HTTP': [
    { outbox: { sink: 'webhook', webhook: { ...WEBHOOK, url: 'ftp://127.0.0.1/hook' } } },
    'outbox.webhook.url',
  ],
  'a webhook URL with credentials': [
    { outbox: { sink: 'webhook', webhook: { ...WEBHOOK, url: 'https://user:word@consumer.test/' } } },
    'outbox.webhook.url',
  ],
  'a webhook secret that is none': [
    { outbox: { sink: 'webhook', webhook: { ...WEBHOOK, secret: 'whsec_short' } } },
    'outbox.webhook.secret',
  ],
  'a plain-HTTP webhook off loopback': [
    { http: { host: '0.0.0.0' }, outbox: { sink: 'webhook', webhook: WEBHOOK } },
    'outbox.webhook.url is plain HTTP',
    '0.0.0.0',
  ],
  'several unknown keys and bounds at once': [
    { http: { porrt: 1, keepAliveTimeoutMs: -1 }, capacity: { permits: 5 }, log: { level: 'loud' } },
    'http.porrt',
    'http.keepAliveTimeoutMs',
    'capacity.permits',
    'log.level',
  ],
  'several contradictions at once': [
    {
      capacity: { maxConcurrent: 1 },
      outbound: { leaseMs: 500 },
      lifecycle: { drainSeconds: 30 },
      store: { sqlite: { busyTimeoutMs: 5_000 } },
      cache: { l1Seconds: 1, queryTimeoutMs: 500, waitTimeoutMs: 500 },
      outbox: { sink: 'webhook', batchSize: 1, leaseMs: 100 },
    },
    'capacity.maxConcurrent',
    'outbound.leaseMs',
    'lifecycle.drainSeconds',
    'busyTimeoutMs',
    'cache.l1Seconds',
    'cache.queryTimeoutMs',
    'cache.waitTimeoutMs',
    'outbox.batchSize',
    'outbox.webhook.timeoutMs',
    'outbox.webhook.url',
  ],
  'an unknown key beside a contradiction': [
    { http: { porrt: 1 }, outbound: { leaseMs: 500 } },
    'http.porrt',
    'outbound.leaseMs',
  ],
}

/** A broken configuration is refused at once, with all that is wrong with it. */
export async function configuration(trial: Trial): Promise<void> {
  for (const [what, [config, ...named]] of Object.entries(BROKEN)) {
    await trial.check(`configuration: ${what} is refused with 78`, async () => {
      const ending = await runToEnd({ config }, START_LIMIT_MS)
      same(ending.code, CONFIG_EXIT_CODE, 'the exit code')
      const text = ending.lines.join('\n')
      for (const name of named) demand(text.includes(name), `${name} among the violations, saw ${text}`)
      clear(ending)
      return shown(ending)
    })
  }

  const environments: Record<string, [env: Record<string, string>, named: string]> = {
    'a PORT that is no number': [{ PORT: 'eighty' }, 'port'],
    'a PORT beyond all ports': [{ PORT: '70000' }, 'http.port'],
    'a LOG_LEVEL that does not exist': [{ LOG_LEVEL: 'loud' }, 'log.level'],
    'a PRICING_URL that is none': [{ PRICING_URL: 'not a url' }, 'outbound.baseUrl'],
    'a NODE_CONFIG that is no JSON': [{ NODE_CONFIG: '{"http":' }, 'NODE_CONFIG'],
    'a NODE_CONFIG that is a list': [{ NODE_CONFIG: '[]' }, 'NODE_CONFIG'],
    'the demo key in production': [
      { NODE_ENV: 'production', NODE_CONFIG: '{"http":{"adminPort":0}}' },
      'demo key',
    ],
    'a plain-HTTP webhook in production': [
      { NODE_ENV: 'production', NODE_CONFIG: webhookConfig(WEBHOOK.url) },
      'outbox.webhook.url is plain HTTP',
    ],
    'the demo key off loopback': [{ HOST: '0.0.0.0', NODE_CONFIG: '{"http":{"adminPort":0}}' }, 'demo key'],
    'an admin listener off loopback without token': [
      { NODE_CONFIG: '{"http":{"adminPort":0,"adminHost":"0.0.0.0"}}' },
      'adminToken',
    ],
  }
  for (const [what, [env, named]] of Object.entries(environments)) {
    await trial.check(`environment: ${what} is refused with 78`, async () => {
      const ending = await runToEnd({ env }, START_LIMIT_MS)
      same(ending.code, CONFIG_EXIT_CODE, 'the exit code')
      const text = ending.lines.join('\n')
      demand(text.toLowerCase().includes(named.toLowerCase()), `${named} among the violations, saw ${text}`)
      clear(ending)
      return shown(ending)
    })
  }

  await trial.check('config:check passes a good configuration, its secrets hidden', async () => {
    const ending = await runToEnd({}, START_LIMIT_MS, 'config:check')
    same(ending.code, 0, 'the exit code')
    const text = ending.lines.join('\n')
    for (const { id, sha256 } of KEY_ENTRIES) demand(!text.includes(sha256), `no hash of ${id}`)
    demand(text.includes('requestBudgetMs'), `the configuration, saw ${text.slice(0, 200)}`)
    return `${ending.lines.length} lines`
  })

  const webhooks: Record<string, Record<string, string>> = {
    'a plain-HTTP one on loopback': { NODE_CONFIG: webhookConfig(WEBHOOK.url) },
    'one by HTTPS in production': {
      NODE_ENV: 'production',
      NODE_CONFIG: webhookConfig('https://consumer.test/'),
    },
    'one by HTTPS off loopback': { HOST: '0.0.0.0', NODE_CONFIG: webhookConfig('https://consumer.test/') },
  }
  for (const [what, env] of Object.entries(webhooks)) {
    await trial.check(`config:check passes a webhook, ${what}, its secret hidden`, async () => {
      const ending = await runToEnd({ env }, START_LIMIT_MS, 'config:check')
      same(ending.code, 0, `of ${JSON.stringify(ending.lines.slice(-1))} the exit code`)
      demand(!ending.lines.join('\n').includes(WEBHOOK.secret), 'no secret, saw it')
    })
  }

  await trial.check('config:check refuses a bad configuration with 78', async () => {
    const config = { http: { porrt: 1 }, capacity: { permits: 5 } }
    const ending = await runToEnd({ config }, START_LIMIT_MS, 'config:check')
    same(ending.code, CONFIG_EXIT_CODE, 'the exit code')
    for (const name of ['http.porrt', 'capacity.permits']) {
      demand(ending.lines.join('\n').includes(name), `${name} among the violations`)
    }
    return shown(ending)
  })
}

function webhookConfig(url: string): string {
  const outbox = { sink: 'webhook', webhook: { ...WEBHOOK, url } }
  return JSON.stringify({ http: { adminPort: 0 }, auth: { keys: KEY_ENTRIES }, outbox })
}
