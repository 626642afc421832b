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
  const pricing = createServer((req, res) => {
    req.resume()
    res.writeHead(500).end()
  }).listen(0, '127.0.0.1')
  await once(pricing, 'listening')
  const overrides = {
    http: { port: 0, adminPort: 0 },
    // Fails at once and is probed soon, so that the breaker goes all the way round.
    outbound: {
      baseUrl: `http://127.0.0.1:${(pricing.address() as AddressInfo).port}`,
      breaker: { minimumRps: 0.1, halfOpenAfterMs: 10 },
    },
    store: { sqlite: { path: join(folder, 'orders.db') } },
    lifecycle: { unreadyDelayMs: 0 },
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
    const app = await startApp(spied, { clock: systemClock, logger, shownConfig: {} })
    while (!read.has('outbound.breaker.halfOpenCalls')) {
      const placed = await fetch(`http://127.0.0.1:${app.port}/v1/orders`, {
        method: 'POST',
        headers: { authorization: 'Bearer demo', 'idempotency-key': '1', 'content-type': 'application/json' },
        body: '{"customerId":"c","currency":"USD","items":[{"sku":"SKU-1","quantity":1}]}',
      })
      expect(placed.status).toBe(503)
    }
    await app.stop()

    const unread = listOptions()
      .map(({ path }) => path.join('.'))
      .filter(path => !read.has(path) && !READ_BY_MAIN.includes(path))
    expect(unread).toEqual([])
    expect([...constrained]).toContain('capacity.targetRps')
  } finally {
    pricing.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

it.each(READ_BY_MAIN)('%s is read by main.ts', path => {
  const main = readFileSync(join(import.meta.dirname, '../../src/main.ts'), 'utf8')
  expect(main).toContain(path.split('.').at(-1))
})
