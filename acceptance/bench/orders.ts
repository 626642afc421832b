import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Bench, median } from './figure.ts'

/**
 * Durable orders per second under a closed loop of 50 connections, this server and a naive one in turn, each on a
 * fresh store. Machines are shared and noisy, so the figure is the ratio within a round, and of several rounds the
 * median. Needs `wrk` (Debian: `apt-get install wrk`).
 */
export const orders: Bench = {
  name: 'orders',
  async run({ short, say }) {
    needWrk()
    const rounds = short ? 1 : 5
    const seconds = short ? 2 : 5
    const ratios: number[] = []
    const rates: Record<Peer, number[]> = { punctual: [], 'naive express': [] }
    for (let round = 1; round <= rounds; round++) {
      const order: Peer[] = round % 2 ? ['punctual', 'naive express'] : ['naive express', 'punctual']
      for (const peer of order) {
        const { ordersPerSecond, refused } = await measure(peer, seconds)
        rates[peer].push(ordersPerSecond)
        say(`round ${round}  ${peer.padEnd(14)} ${Math.round(ordersPerSecond)} orders/s, ${refused} not 2xx`)
      }
      ratios.push((rates.punctual.at(-1) ?? 0) / (rates['naive express'].at(-1) ?? 1))
    }
    for (const peer of Object.keys(rates) as Peer[]) {
      say(`median   ${peer.padEnd(14)} ${Math.round(median(rates[peer]))} orders/s`)
    }
    return [
      { what: 'orders/s beside a naive server', measured: median(ratios), unit: '×', wanted: { atLeast: 3 } },
    ]
  },
}

const CONNECTIONS = 50

const PEERS = {
  punctual: ['src/main.ts'],
  'naive express': ['acceptance/bench/naive-express.ts'],
} as const
type Peer = keyof typeof PEERS

interface Reading {
  readonly ordersPerSecond: number
  readonly refused: number
}

/** One peer, one fresh store, one run of wrk. */
export async function measure(peer: Peer, seconds: number, config: object = {}): Promise<Reading> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  const server = spawn(process.execPath, [...PEERS[peer]], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      STORE_PATH: join(folder, 'orders.db'),
      NODE_CONFIG: JSON.stringify({ http: { adminPort: 0 }, ...config }),
    },
  })
  try {
    const port = await readyPort(server)
    wrk(port, 1, `${peer[0]}warm`)
    return wrk(port, seconds, `${peer[0]}run`)
  } finally {
    server.kill('SIGTERM')
    await new Promise(resolve => server.once('exit', resolve))
    rmSync(folder, { recursive: true, force: true })
  }
}

async function readyPort(server: ChildProcess): Promise<number> {
  if (server.stdout === null) throw new TypeError('a server without stdout')
  for await (const line of createInterface({ input: server.stdout })) {
    const entry = JSON.parse(line) as { msg?: string; port?: number }
    if (entry.msg !== 'ready' || entry.port === undefined) continue
    server.stdout.resume()
    return entry.port
  }
  throw new Error('the server ended before it was ready')
}

function wrk(port: number, seconds: number, run: string): Reading {
  const script = join(import.meta.dirname, 'orders.lua')
  const url = `http://127.0.0.1:${port}/v1/orders`
  const text = execFileSync('wrk', ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '-s', script, url], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, BENCH_RUN: run },
  })
  const all = Number(/(\d+) requests in/.exec(text)?.[1] ?? 0)
  const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0)
  return { ordersPerSecond: (all - refused) / seconds, refused }
}

export function needWrk(): void {
  try {
    execFileSync('wrk', ['-v'], { stdio: 'ignore' })
  } catch (error) {
    // It exits with 1 after telling its version.
    if ((error as { status?: number | null }).status === 1) return
    throw new Error('wrk is not installed (Debian: apt-get install wrk)')
  }
}
