import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { toJSONSchema } from 'zod'
import {
  CONSTRAINTS,
  ConfigError,
  configSchema,
  generatedPages,
  listOptions,
  loadConfig,
  redact,
} from '../../src/config/index.ts'

const FOLDER = join(import.meta.dirname, '../../config')

function load(overrides: object = {}, env: Record<string, string> = {}) {
  return loadConfig(FOLDER, { NODE_CONFIG: JSON.stringify(overrides), ...env })
}

function violations(overrides: object, env: Record<string, string> = {}): readonly string[] {
  try {
    load(overrides, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.violations
    throw error
  }
  return []
}

describe('layers', () => {
  it('the defaults start', () => {
    expect(load().http.port).toBe(8080)
  })

  it('named variables go over the files, NODE_CONFIG goes over them', () => {
    expect(load({}, { PORT: '9000', LOG_LEVEL: 'warn' })).toMatchObject({
      http: { port: 9000 },
      log: { level: 'warn' },
    })
    expect(load({ http: { port: 9001 } }, { PORT: '9000' }).http.port).toBe(9001)
  })

  it.each([
    ['HOST', '127.0.0.2', 'http', 'host'],
    ['STORE_PATH', '/tmp/x.db', 'store', 'sqlite', 'path'],
    ['PRICING_URL', 'http://127.0.0.1:1', 'outbound', 'baseUrl'],
    ['ADMIN_TOKEN', '0123456789012345', 'http', 'adminToken'],
  ])('%s is read', (name, value, ...path) => {
    const config: unknown = load({}, { [name]: value })
    expect(path.reduce((inner, key) => (inner as Record<string, unknown>)[key], config)).toBe(value)
  })

  it('a variable that should be a number and is not is a violation', () => {
    expect(violations({}, { PORT: 'abc' })).toEqual([expect.stringMatching(/^http\.port: /)])
  })

  it('a NODE_CONFIG that is no JSON object is a violation that does not repeat it', () => {
    for (const text of ['{', '[]', '1', 'secret']) {
      expect(() => loadConfig(FOLDER, { NODE_CONFIG: text })).toThrow(ConfigError)
    }
  })

  it('the result cannot be changed', () => {
    const config = load()
    expect(() => Object.assign(config.http, { port: 1 })).toThrow(TypeError)
  })
})

describe('violations', () => {
  it('unknown keys, wrong types and broken constraints are listed together', () => {
    const found = violations({ surprise: 1, http: { port: 'x', other: 1 }, outbound: { totalMs: 50 } })
    expect(found).toEqual([
      expect.stringMatching(/^http\.port: /),
      'http.other: unknown key',
      'surprise: unknown key',
      expect.stringMatching(/^total-holds-all-attempts: /),
    ])
  })

  const BREAKING: Readonly<Record<string, [object, Record<string, string>?]>> = {
    'budgets-decrease': [{ outbound: { leaseMs: 110 } }],
    'total-holds-all-attempts': [{ outbound: { retryDelayMs: 31, retryMaxDelayMs: 31 } }],
    'lease-leaves-commit-reserve': [{ deadline: { commitReserveMs: 51 } }],
    'breaker-samples-attempts': [
      {
        deadline: { requestBudgetMs: 3000 },
        outbound: { leaseMs: 2900, totalMs: 2800, attemptMs: 501, breaker: { samplingSeconds: 1 } },
      },
    ],
    'hedge-within-attempt': [{ outbound: { hedge: { minDelayMs: 40 } } }],
    'batch-window-within-attempt': [{ outbound: { batch: { windowMs: 40 } } }],
    'permits-carry-target': [{ capacity: { maxConcurrent: 59 } }],
    'busy-timeout-within-budget': [{ store: { sqlite: { busyTimeoutMs: 200 } } }],
    'cache-tiers-outlive-each-other': [{ cache: { l1Seconds: 2 } }],
    'query-within-load': [{ cache: { queryTimeoutMs: 90 } }],
    'wait-within-budget': [{ cache: { waitTimeoutMs: 200 } }],
    'drain-within-shutdown': [{ lifecycle: { drainSeconds: 10, shutdownTimeoutSeconds: 10 } }],
    'drain-within-supervisor-grace': [{ lifecycle: { drainSeconds: 25, shutdownTimeoutSeconds: 26 } }],
    'headers-within-request': [{ http: { headersTimeoutMs: 15_001 } }],
    'budget-within-request-timeout': [{ http: { requestTimeoutMs: 200, headersTimeoutMs: 200 } }],
    'outbox-carries-target': [{ outbox: { batchSize: 199 } }],
    'delivery-within-lease': [{ outbox: { leaseMs: 9_999 } }],
    'retry-delays-ordered': [{ outbox: { retryMaxDelayMs: 499 } }],
    'webhook-complete': [{ outbox: { sink: 'webhook', webhook: { url: 'https://example.com/' } } }],
    'plain-webhook-stays-on-loopback': [
      { ...webhookTo('http://example.com/'), auth: { keys: [key('a', 'a')] } },
      { NODE_ENV: 'production' },
    ],
    'api-keys-distinct': [{ auth: { keys: [key('a', 'a'), key('a', 'b')] } }],
    'demo-key-stays-on-loopback': [{}, { NODE_ENV: 'production' }],
    'admin-token-off-loopback': [{ http: { adminHost: '0.0.0.0' } }],
  }

  it.each(CONSTRAINTS.map(({ name }) => name))('%s refuses what breaks it, and only that', name => {
    const [overrides, env] = BREAKING[name] ?? [{}]
    expect(violations(overrides, env).map(text => text.split(':', 1)[0])).toEqual([name])
  })

  it.each(['production', 'PRODUCTION', ' production', 'staging,production'])(
    'NODE_ENV=%j is production to the demo key',
    name => {
      expect(violations({}, { NODE_ENV: name })).toEqual([
        expect.stringMatching(/^demo-key-stays-on-loopback/),
      ])
    },
  )

  it.each(['__proto__', 'constructor', 'prototype'])(
    'NODE_CONFIG cannot reach what objects inherit, by %s',
    key => {
      for (const text of [`{"${key}":{"polluted":1}}`, `{"http":{"${key}":{"${key}":{"polluted":1}}}}`]) {
        expect(() => loadConfig(FOLDER, { NODE_CONFIG: text })).toThrow(ConfigError)
        expect({}).not.toHaveProperty('polluted')
      }
    },
  )

  it.each([
    ['http://example.com/', '0.0.0.0', ['plain-webhook-stays-on-loopback']],
    ['HTTP://example.com/', '0.0.0.0', ['plain-webhook-stays-on-loopback']],
    ['http://example.com/', '127.0.0.1', []],
    ['https://example.com/', '0.0.0.0', []],
  ])('a webhook to %s beside a listener on %s breaks %j', (url, host, broken) => {
    const overrides = { ...webhookTo(url), http: { host }, auth: { keys: [key('a', 'a')] } }
    expect(violations(overrides).map(text => text.split(':', 1)[0])).toEqual(broken)
  })

  it.each([
    { url: 'https://example.com/' },
    { secret: SECRET },
    { url: '', secret: SECRET },
    { url: 'https://example.com/', secret: '' },
  ])('a webhook of which only %j is known is not complete', webhook => {
    expect(violations({ outbox: { sink: 'webhook', webhook } })).toEqual([
      expect.stringMatching(/^webhook-complete/),
    ])
  })

  it.each([
    'example.com',
    'ftp://example.com/',
    'https://a:b@example.com/',
    'https://example.com/#a',
    'http:',
  ])('%s is no URL for a webhook', url => {
    expect(violations({ outbox: { webhook: { url } } })).toEqual([
      expect.stringMatching(/^outbox\.webhook\.url: /),
    ])
  })

  it.each(['secret', 'whsec_', 'whsec_short', `whsec_${'!'.repeat(44)}`])(
    '%s is no secret for a webhook, and is not repeated',
    secret => {
      const found = violations({ outbox: { webhook: { secret } } })
      expect(found).toEqual([expect.stringMatching(/^outbox\.webhook\.secret: /)])
      if (secret.length > 10) expect(found.join()).not.toContain(secret)
    },
  )

  it('the demo key is refused off loopback', () => {
    expect(violations({ http: { host: '0.0.0.0' } })).toEqual([
      expect.stringMatching(/^demo-key-stays-on-loopback/),
    ])
  })

  it('every number has both bounds, and refuses what lies beyond them', () => {
    for (const { path, schema } of listOptions()) {
      const json = configSchemaOf(schema)
      if (json.type !== 'integer' && json.type !== 'number') continue
      for (const value of [json.minimum - 1, json.maximum + 1]) {
        const overrides = path.reduceRight<unknown>((inner, part) => ({ [part]: inner }), value)
        expect(violations(overrides as object), path.join('.')).toContainEqual(
          expect.stringMatching(new RegExp(`^${path.join('\\.')}: `)),
        )
      }
    }
  })
})

const SECRET = `whsec_${'a'.repeat(43)}=`

function webhookTo(url: string) {
  return { outbox: { sink: 'webhook', webhook: { url, secret: SECRET } } }
}

function key(id: string, of: string) {
  return { id, tenant: id, sha256: of.repeat(64), scopes: ['orders:read'] }
}

function configSchemaOf(schema: unknown): { type?: string; minimum: number; maximum: number } {
  return toJSONSchema(schema as never) as never
}

describe('secrets', () => {
  it('are hidden, and nothing else is', () => {
    const config = load({ outbox: { webhook: { secret: SECRET } } }, { ADMIN_TOKEN: 'a-secret-of-ours-0' })
    const shown = JSON.stringify(redact(config))
    expect(shown).not.toContain('a-secret-of-ours-0')
    expect(shown).not.toContain(SECRET)
    expect(shown).not.toContain(config.auth.keys[0]?.sha256)
    expect(shown).toContain('"adminToken":"***"')
    expect(shown).toContain('"tenant":"demo"')
  })
})

describe('documentation', () => {
  it.each([...generatedPages().keys()])('config/%s is what `npm run generate` writes', name => {
    expect(readFileSync(join(FOLDER, name), 'utf8')).toBe(generatedPages().get(name))
  })

  it('every key says what it is and what it trades, and every number its unit', () => {
    for (const { path, meta, schema } of listOptions()) {
      expect(meta?.is, path.join('.')).toBeTruthy()
      expect(meta?.trade, path.join('.')).toBeTruthy()
      if (['integer', 'number'].includes(configSchemaOf(schema).type ?? ''))
        expect(meta.unit, path.join('.')).toBeTruthy()
    }
  })

  it('the defaults of the schema are a configuration', () => {
    expect(configSchema.safeParse({}).success).toBe(true)
  })
})
