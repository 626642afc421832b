import { getEventListeners, once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { outboundChannels, PricingClient } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { type Clock, systemClock, type Timer } from '../../src/runtime/index.ts'
import { AttemptLedger } from './attempt-ledger.ts'
import { EMPTY_SHELF, WIDE } from './priced-client.ts'

const ROUNDS = 50
const CALLS_PER_ROUND = 200
const CALLS = ROUNDS * CALLS_PER_ROUND
/** Each round has as many requests of each way, of so many SKUs. */
const BATCH = 4
const HUNG_UP = new Error('the client hung up')

/** What pricing does when a request has come, before its callers hang up. */
const ways: ((res: ServerResponse, hangUp: () => void) => void)[] = [
  // They hang up while the connection is being made.
  () => {},
  (_res, hangUp) => hangUp(),
  (res, hangUp) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
    res.write('{"prices":', hangUp)
  },
  (res, hangUp) => {
    res.writeHead(500).write('no')
    hangUp()
  },
]

/** Counts the timers that are still to fire. */
class CountingClock implements Clock {
  readonly pending = new Set<Timer>()
  nowMs = systemClock.nowMs
  wallMs = systemClock.wallMs
  afterPoll = systemClock.afterPoll

  setTimer(fire: () => void, delayMs: number): Timer {
    const timer: Timer = systemClock.setTimer(() => {
      this.pending.delete(timer)
      fire()
    }, delayMs)
    this.pending.add(timer)
    return timer
  }

  clearTimer(timer: Timer): void {
    this.pending.delete(timer)
    systemClock.clearTimer(timer)
  }
}

const clock = new CountingClock()
const channels = outboundChannels()
const ledger = new AttemptLedger(channels)
const sockets = new Set<Socket>()
/** Hangs up on behalf of who asked for this SKU. */
const hangUps = new Map<string, () => void>()
const server = createServer((req, res) => {
  json(req).then(
    body => {
      const { skus } = body as { skus: string[] }
      const way = ways[Number(skus[0]?.split('-')[0])]
      way?.(res, () => {
        for (const sku of skus) hangUps.get(sku)?.()
      })
    },
    () => res.destroy(),
  )
})
server.on('connection', socket => {
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
})
let client: PricingClient

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const options = outboundOptions.parse({
    ...WIDE,
    batch: { maxSize: BATCH },
    // The failures among them are not to open it.
    breaker: { minimumRps: 100_000 },
  })
  const { port } = server.address() as AddressInfo
  client = new PricingClient(`http://127.0.0.1:${port}`, options, { channels, clock, shelf: EMPTY_SHELF })
})

afterAll(async () => {
  await client.close()
  server.closeAllConnections()
  server.close()
})

const warnings: Error[] = []
const collectWarning = (warning: Error) => void warnings.push(warning)
beforeEach(() => void process.on('warning', collectWarning))
afterEach(() => void process.off('warning', collectWarning))

/** Makes 200 calls a round, all of which hang up, and waits until the last of them and of their sockets is gone. */
async function callAndHangUp(rounds: number): Promise<{ outcomes: unknown[]; listeners: number }> {
  const outcomes: unknown[] = []
  let listeners = 0
  for (let round = 0; round < rounds; round++) {
    const requests = Array.from({ length: CALLS_PER_ROUND }, () => new AbortController())
    const calls = requests.map((request, index) => {
      const sku = `${Math.floor(index / BATCH) % ways.length}-${index}`
      hangUps.set(sku, () => request.abort(HUNG_UP))
      return client
        .fetch({
          currency: 'USD',
          skus: [sku],
          neededByMs: clock.nowMs() + 60_000,
          signal: request.signal,
          traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
        })
        .catch((error: unknown) => error)
    })
    for (const [sku, hangUp] of hangUps) if (sku.startsWith('0-')) hangUp()
    outcomes.push(...(await Promise.all(calls)))
    for (const socket of sockets) if (!socket.destroyed) await once(socket, 'close')
    for (const { signal } of requests) listeners += getEventListeners(signal, 'abort').length
    hangUps.clear()
  }
  return { outcomes, listeners }
}

const tcpSockets = () => process.getActiveResourcesInfo().filter(kind => kind === 'TCPSocketWrap').length

test('10,000 calls that hang up, at every point of an exchange, leave no listener, timer, socket or warning', async () => {
  const before = tcpSockets()
  const { outcomes, listeners } = await callAndHangUp(ROUNDS)
  expect(outcomes).toHaveLength(CALLS)
  expect(outcomes.filter(outcome => outcome === HUNG_UP)).toHaveLength(CALLS)
  expect({ listeners, timers: clock.pending.size, sockets: sockets.size }).toEqual({
    listeners: 0,
    timers: 0,
    sockets: 0,
  })
  expect(tcpSockets()).toBe(before)
  expect(ledger.settled).toBe(ledger.launched)
  expect(ledger.results).toMatchObject({ won: 0, expired: 0, late: 0, shed: 0 })
  expect(ledger.results.cancelled).toBeGreaterThan(CALLS / BATCH / 2)
  expect(warnings).toEqual([])
}, 60_000)

test('10,000 more leave the heap where it was', async () => {
  const heapUsed = async () => {
    await new Promise(resolve => setImmediate(resolve))
    globalThis.gc?.()
    return process.memoryUsage().heapUsed
  }
  expect(globalThis.gc).toBeTypeOf('function')
  await callAndHangUp(ROUNDS / 5)
  const before = await heapUsed()
  await callAndHangUp(ROUNDS)
  const grownBytesPerCall = ((await heapUsed()) - before) / CALLS
  // Measured: between -70 and 30 when nothing is kept; a call that is kept is 500 at least.
  expect(grownBytesPerCall).toBeLessThan(100)
}, 60_000)
