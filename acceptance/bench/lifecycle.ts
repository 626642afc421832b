import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { newId } from '../../src/domain/index.ts'
import { drawRandom, systemClock } from '../../src/runtime/index.ts'
import { openStore, storeChannels } from '../../src/store/index.ts'
import { storeOptions } from '../../src/store/options.ts'
import { type Bench, type Figure, median } from './figure.ts'
import { someOrder } from './some-order.ts'

/** How soon an instance is ready, how quick it is from then on, and how soon it is gone. */
export const lifecycle: Bench = {
  name: 'lifecycle',
  async run({ short, say }) {
    const rounds = short ? 1 : 5
    const many = short ? 20_000 : 1_000_000
    const empty: Life[] = []
    for (let round = 0; round < rounds; round++) empty.push(await inFolder(folder => live(folder)))
    say(`ready after ${empty.map(({ readyMs }) => Math.round(readyMs)).join(', ')} ms`)
    say(`first order ${shown(empty.map(({ order }) => order.firstMs))} ms`)
    say(`those after ${shown(empty.map(({ order }) => order.medianMs))} ms`)
    const full = await inFolder(async folder => {
      await fill(folder, many)
      const lives: Life[] = []
      for (let round = 0; round < Math.min(rounds, 3); round++) lives.push(await live(folder))
      return lives
    })
    const figure = (what: string, values: number[], unit: string, atMost: number): Figure => {
      return { what, measured: median(values), unit, wanted: { atMost } }
    }
    const beside = ({ firstMs, medianMs }: First) => firstMs / medianMs
    return [
      figure(
        'start to ready, empty store',
        empty.map(({ readyMs }) => readyMs),
        'ms',
        1_500,
      ),
      figure(
        `start to ready, ${many} orders`,
        full.map(({ readyMs }) => readyMs),
        'ms',
        2_000,
      ),
      figure(
        'first order after ready beside the median of its like',
        empty.map(({ order }) => beside(order)),
        '×',
        3,
      ),
      figure(
        'first read after ready beside the median',
        full.map(({ read }) => beside(read)),
        '×',
        3,
      ),
      figure(
        'drain of an idle instance, over unreadyDelayMs',
        empty.map(({ drainMs }) => drainMs),
        'ms',
        100,
      ),
    ]
  },
}

interface First {
  readonly firstMs: number
  readonly medianMs: number
}

/** One instance from its start to its end. */
interface Life {
  readonly readyMs: number
  /** Of orders whose prices have to be fetched, as the first one's must. */
  readonly order: First
  readonly read: First
  readonly drainMs: number
}

async function live(folder: string): Promise<Life> {
  const client = await Client.warm()
  const startedMs = performance.now()
  const server = spawn(process.execPath, ['src/main.ts'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      STORE_PATH: join(folder, 'orders.db'),
      NODE_CONFIG: JSON.stringify({ http: { adminPort: 0 }, outbox: { sink: 'none' } }),
    },
  })
  try {
    const port = await readyPort(server)
    const readyMs = performance.now() - startedMs
    // Each SKU for the first time, as far as the bundled list goes.
    const orders = await client.times(45, nth => client.order(port, 2 * nth + 1))
    const reads = await client.times(200, () => client.read(port))
    const stoppedMs = performance.now()
    server.kill('SIGTERM')
    await once(server, 'exit')
    const drainMs = performance.now() - stoppedMs - UNREADY_DELAY_MS
    return { readyMs, order: firstOf(orders), read: firstOf(reads), drainMs }
  } finally {
    client.close()
    if (server.exitCode === null) server.kill('SIGKILL')
  }
}

/** The first beside the later half of the rest. */
function firstOf([first = Number.NaN, ...rest]: readonly number[]): First {
  return { firstMs: first, medianMs: median(rest.slice(rest.length / 2)) }
}

/** A client that is as quick as it will be before it measures anything. */
class Client {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  static async warm(): Promise<Client> {
    const client = new Client()
    const echo = createServer((req, res) => req.resume().on('end', () => res.end('{}')))
    echo.listen(0, '127.0.0.1')
    await once(echo, 'listening')
    const { port } = echo.address() as AddressInfo
    await client.times(300, nth => client.order(port, nth))
    echo.closeAllConnections()
    echo.close()
    return client
  }

  async times(count: number, ask: (nth: number) => Promise<void>): Promise<number[]> {
    const tookMs: number[] = []
    for (let nth = 0; nth < count; nth++) {
      const startedMs = performance.now()
      await ask(nth)
      tookMs.push(performance.now() - startedMs)
    }
    return tookMs
  }

  order(port: number, sku: number): Promise<void> {
    const items = [sku, sku + 1].map(n => ({ sku: `SKU-${n}`, quantity: 1 }))
    const body = JSON.stringify({ customerId: 'cust-1', currency: 'USD', items })
    return this.#ask(port, 'POST', '/v1/orders', body)
  }

  read(port: number): Promise<void> {
    return this.#ask(port, 'GET', `/v1/orders/${newId(Date.now(), drawRandom(16))}`)
  }

  close(): void {
    this.#agent.destroy()
  }

  #ask(port: number, method: string, path: string, body?: string): Promise<void> {
    const headers = {
      authorization: 'Bearer demo',
      'content-type': 'application/json',
      'idempotency-key': newId(Date.now(), drawRandom(16)),
      ...(body !== undefined && { 'content-length': body.length }),
    }
    return new Promise((resolve, reject) => {
      const req = request({ host: '127.0.0.1', port, method, path, headers, agent: this.#agent }, res => {
        res.resume().on('end', () => resolve())
      })
      req.on('error', reject)
      req.end(body)
    })
  }
}

async function readyPort(server: ChildProcess): Promise<number> {
  if (server.stdout === null) throw new TypeError('a server without stdout')
  const lines = createInterface({ input: server.stdout })
  return new Promise((resolve, reject) => {
    lines.on('line', line => {
      const { msg, port } = JSON.parse(line) as { msg?: string; port?: number }
      if (msg === 'ready' && port !== undefined) resolve(port)
    })
    lines.on('close', () => reject(new Error('the server ended before it was ready')))
  })
}

async function fill(folder: string, orders: number): Promise<void> {
  const sqlite = { path: join(folder, 'orders.db'), synchronous: 'OFF', maxBatch: AT_ONCE }
  const store = await openStore(storeOptions.parse({ sqlite }), {
    clock: systemClock,
    channels: storeChannels(),
    settleGraceMs: 25,
    maxPending: AT_ONCE,
  })
  for (let made = 0; made < orders; made += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => store.commit(someOrder(), NEVER)))
  }
  await store.close()
}

async function inFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function shown(values: readonly number[]): string {
  return values.map(value => value.toFixed(1)).join(', ')
}

// lifecycle.unreadyDelayMs by default.
const UNREADY_DELAY_MS = 1_000
const AT_ONCE = 500
const NEVER = new AbortController().signal
