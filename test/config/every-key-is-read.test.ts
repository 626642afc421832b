import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startApp } from '../../src/app.ts'
import { CONSTRAINTS, type Config, listOptions, loadConfig } from '../../src/config/index.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { createLogger } from '../../src/telemetry/index.ts'

/** Keys that the process itself reads, around the app. */
const READ_BY_MAIN = ['lifecycle.shutdownTimeoutSeconds']

/** Wraps `value` so that every leaf that is read is noted by its path. */
function watched<Value extends object>(value: Value, read: Set<string>, path: string[] = []): Value {
  return new Proxy(value, {
    get(target, key) {
      const inner: unknown = Reflect.get(target, key)
      if (typeof key === 'symbol' || Array.isArray(target)) return inner
      const at = [...path, key]
      if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) read.add(at.join('.'))
      return typeof inner === 'object' && inner !== null ? watched(inner, read, at) : inner
    },
  })
}

it('every key of the configuration is read by what runs, or by a constraint on what runs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'))
  // Pricing that is down once the app is ready, and a consumer that never takes anything.
  let pricingIsDown = false
  const others = createServer((req, res) => {
    req.resume()
    if (req.url === '/hook' || pricingIsDown) res.writeHead(500).end()
    else
      res
        .setHeader('content-type', 'application/json')
        .end('{"prices":[{"sku":"SKU-1","unitPrice":5}],"unknown":[]}')
  }).listen(0, '127.0.0.1')
  await once(others, 'listening')
  const base = `http://127.0.0.1:${(others.address() as AddressInfo).port}`
  const overrides = {
    http: { port: 0, adminPort: 0 },
    // Fails at once and is probed soon, so that the breaker goes all the way round.
    outbound: {
      baseUrl: base,
      breaker: { minimumRps: 0.1, halfOpenAfterMs: 10 },
    },
    store: { sqlite: { path: join(folder, 'orders.db') } },
    lifecycle: { unreadyDelayMs: 0 },
    // So that a busy machine is no reason for another status.
    deadline: { requestBudgetMs: 10_000 },
    idempotency: { sweepIntervalMs: 10 },
    outbox: {
      sink: 'webhook',
      webhook: { url: `${base}/hook`, secret: `whsec_${'a'.repeat(43)}=`, allowPrivateNetworks: true },
    },
  }
  const env = { NODE_CONFIG: JSON.stringify(overrides) }
  // Thawed: a proxy may not show anything else in place of what is frozen.
  const config = structuredClone(loadConfig(join(import.meta.dirname, '../../config'), env)) as Config
  const read = new Set<string>()
  const spied = watched(config, read)
  try {
    for (const { violation } of CONSTRAINTS) violation(spied, { production: false })
    const constrained = new Set(read)
    const logger = createLogger(spied.log, { write: () => undefined })
    const app = await startApp(spied, {
      clock: systemClock,
      logger,
      writeEvent: async () => true,
      shownConfig: {},
    })
    expect(await app.warmedUp).toBe(true)
    pricingIsDown = true
    const place = async () => {
      const placed = await fetch(`http://127.0.0.1:${app.port}/v1/orders`, {
        method: 'POST',
        headers: { authorization: 'Bearer demo', 'idempotency-key': '1', 'content-type': 'application/json' },
        body: '{"customerId":"c","currency":"USD","items":[{"sku":"SKU-1","quantity":1}]}',
      })
      return placed.status
    }
    while (!read.has('outbound.breaker.halfOpenCalls')) expect(await place()).toBe(503)
    pricingIsDown = false
    while ((await place()) !== 201);
    // What only a failed delivery, a sweep and a look at readiness ask.
    while (!read.has('outbox.maxAttempts') || !read.has('outbox.deliveredRetentionHours')) {
      await fetch(`http://127.0.0.1:${app.port}/health/ready`)
    }
    await app.stop()

    const unread = listOptions()
      .map(({ path }) => path.join('.'))
      .filter(path => !read.has(path) && !READ_BY_MAIN.includes(path))
    expect(unread).toEqual([])
    expect([...constrained]).toContain('capacity.targetRps')
  } finally {
    others.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

it.each(READ_BY_MAIN)('%s is read by main.ts', path => {
  const main = readFileSync(join(import.meta.dirname, '../../src/main.ts'), 'utf8')
  expect(main).toContain(path.split('.').at(-1))
})
