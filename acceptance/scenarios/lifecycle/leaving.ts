import Database from 'better-sqlite3'
import { jsonOf, tally } from '../../support/answer.ts'
import { WIDE_BUDGETS } from '../../support/bench.ts'
import { requestBytes } from '../../support/connection.ts'
import { answered, between, created, demand, same, status } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { later } from '../../support/later.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'
import type { Json, Server } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

const UNREADY_MS = 400
const CONFIG: Json = { lifecycle: { unreadyDelayMs: UNREADY_MS } }

/** SIGTERM under clients that are in the middle of something. */
export async function leaving(trial: Trial): Promise<void> {
  await idleConnection(trial)
  await pipelined(trial)
  await halfBody(trial)
  await lockedStore(trial)
  await dropped(trial)
}

/** An order as bytes for a bare socket. */
function orderBytes(): Buffer {
  const headers = {
    authorization: `Bearer ${KEYS.full}`,
    'content-type': 'application/json',
    'idempotency-key': freshKey(),
  }
  return requestBytes('POST', '/v1/orders', headers, JSON.stringify(sampleOrder()))
}

/** Asks it to stop, and waits until it says that it drains. */
async function drain(server: Server): Promise<void> {
  server.signal('SIGTERM')
  await until('the drain to begin', () => server.lines.some(line => line.includes('"phase":"draining"')))
}

async function idleConnection(trial: Trial): Promise<void> {
  await trial.check(
    'a request on an idle connection just after the signal is served, and asked to leave',
    async () => {
      const pricing = await trial.pricing()
      const server = await trial.server({ pricingUrl: pricing.url, config: CONFIG })
      const connection = await trial.connect(server.port)
      connection.send(orderBytes())
      created(answered(await connection.read()))
      await drain(server)
      connection.send(orderBytes())
      const answer = answered(await connection.read())
      created(answer)
      same(answer.headers.connection, 'close', 'Connection')
      same(await connection.read(), undefined, 'anything after it')
      same(await server.exit(), 0, 'the exit code')
    },
  )
}

async function pipelined(trial: Trial): Promise<void> {
  await trial.check('requests pipelined around the signal are all answered, in turn', async () => {
    const pricing = await trial.pricing()
    const server = await trial.server({ pricingUrl: pricing.url, config: { ...WIDE_BUDGETS, ...CONFIG } })
    const connection = await trial.connect(server.port)
    pricing.behaviour = { kind: 'hold' }
    for (let sent = 0; sent < 3; sent++) connection.send(orderBytes())
    await pricing.called(1)
    await drain(server)
    pricing.release()
    const statuses: number[] = []
    for (let answer = await connection.read(); answer !== undefined; answer = await connection.read()) {
      statuses.push(answer.status)
    }
    same(statuses.join(), '201,201,201', 'the statuses')
    same(await server.exit(), 0, 'the exit code')
    return statuses.join()
  })
}

async function halfBody(trial: Trial): Promise<void> {
  await trial.check(
    'a client that has sent half a body is answered within its budget, and holds nothing up',
    async () => {
      const pricing = await trial.pricing()
      const server = await trial.server({ pricingUrl: pricing.url, config: CONFIG })
      const connection = await trial.connect(server.port)
      const bytes = orderBytes()
      connection.send(bytes.subarray(0, bytes.length - 20))
      await until('the request to be in flight', async () => {
        const metrics = await Metrics.read(trial.watcher(server.adminPort))
        return metrics.sum('punctual_admission_in_flight') === 1
      })
      server.signal('SIGTERM')
      const startedMs = performance.now()
      const answer = answered(await connection.read())
      status(answer, 504)
      same(jsonOf(answer).committed, 'no', 'committed')
      same(await server.exit(), 0, 'the exit code')
      between(performance.now() - startedMs, UNREADY_MS, UNREADY_MS + 1_000, 'the time to the exit, in ms,')
      return `exit 0 after ${Math.round(performance.now() - startedMs)} ms`
    },
  )
}

async function lockedStore(trial: Trial): Promise<void> {
  await trial.check('with the store locked everyone is told in time, and it exits with 0', async () => {
    const pricing = await trial.pricing()
    const server = await trial.server({ pricingUrl: pricing.url, config: CONFIG })
    const api = trial.client(server.port, KEYS.full)
    const lock = new Database(server.storePath)
    trial.own(() => void lock.close())
    lock.exec('BEGIN IMMEDIATE')
    const pending = later(Promise.all(Array.from({ length: 10 }, () => api.order(freshKey(), sampleOrder()))))
    await drain(server)
    const startedMs = performance.now()
    const answers = await pending
    for (const answer of answers) {
      demand(answer.status === 503 || answer.status === 504, `503 or 504, saw ${answer.status}`)
      between(answer.elapsedMs, 0, 400, 'the time of an answer, in ms,')
    }
    same(await server.exit(), 0, 'the exit code')
    between(performance.now() - startedMs, 0, UNREADY_MS + 4_000, 'the time to the exit, in ms,')
    return `${tally(answers)}, exit 0 after ${Math.round(performance.now() - startedMs)} ms`
  })
}

async function dropped(trial: Trial): Promise<void> {
  await trial.check('requests that outlast drainSeconds are cut off, counted and told: exit 75', async () => {
    const pricing = await trial.pricing()
    const config = { ...WIDE_BUDGETS, lifecycle: { unreadyDelayMs: 0, drainSeconds: 1 } }
    const server = await trial.server({ pricingUrl: pricing.url, config })
    const connection = await trial.connect(server.port)
    pricing.behaviour = { kind: 'hold' }
    connection.send(orderBytes())
    await pricing.called(1)
    server.signal('SIGTERM')
    const startedMs = performance.now()
    same(await connection.read(), undefined, 'the answer of a request that was cut off')
    same(await server.exit(), 75, 'the exit code')
    between(performance.now() - startedMs, 1_000, 2_500, 'the time to the exit, in ms,')
    const line = server.lines.find(text => text.includes('"msg":"drained"')) ?? ''
    same((JSON.parse(line) as { dropped?: unknown }).dropped, 1, 'the dropped requests')
    return 'exit 75'
  })
}
