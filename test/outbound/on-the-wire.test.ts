import { setTimeout as passed } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { outboundChannels, PricingClient } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { type Clock, systemClock } from '../../src/runtime/index.ts'
import { EMPTY_SHELF, NARROW, priced, TRACE_ID, WIDE } from './priced-client.ts'
import { pricingServer, say } from './pricing-server.ts'

/** The clock of the process, which can be put forward. */
class ForwardClock implements Clock {
  aheadMs = 0
  wallMs = systemClock.wallMs
  setTimer = systemClock.setTimer
  clearTimer = systemClock.clearTimer
  afterPoll = systemClock.afterPoll

  nowMs(): number {
    return systemClock.nowMs() + this.aheadMs
  }
}

describe('on the wire', () => {
  test('half-open, exactly halfOpenCalls reach pricing, and everyone else is shed at once', async () => {
    const probes = 3
    let answer: 'fail' | 'hold' | 'price' = 'fail'
    const held: (() => void)[] = []
    const allHeld = Promise.withResolvers<void>()
    const server = await pricingServer((res, { body }) => {
      const price = () => say(res, { prices: body.skus.map(sku => ({ sku, unitPrice: 5 })) })
      if (answer === 'fail') res.writeHead(500).end()
      else if (answer === 'price') price()
      else if (held.push(price) === probes) allHeld.resolve()
    })
    onTestFinished(() => server.close())
    const clock = new ForwardClock()
    const options = outboundOptions.parse({
      ...WIDE,
      retryMaxAttempts: 0,
      hedge: { enabled: false },
      batch: { maxSize: 1 },
      breaker: { samplingSeconds: 1, minimumRps: 5, halfOpenAfterMs: 1_000, halfOpenCalls: probes },
    })
    const client = new PricingClient(server.baseUrl, options, {
      channels: outboundChannels(),
      clock,
      shelf: EMPTY_SHELF,
    })
    onTestFinished(() => client.close())
    const callMany = (calls: number) =>
      Array.from({ length: calls }, (_, index) =>
        client
          .fetch({
            currency: 'USD',
            skus: [`SKU-${index}`],
            neededByMs: clock.nowMs() + 60_000,
            signal: new AbortController().signal,
            traceparent: `00-${TRACE_ID}-${'b'.repeat(16)}-01`,
          })
          .then(
            () => 'ok',
            (error: { kind: string }) => error.kind,
          ),
      )
    await Promise.all(callMany(5))
    expect(client.breakerState).toBe('open')
    expect(await Promise.all(callMany(50))).toEqual(Array(50).fill('shed'))
    expect(server.received).toHaveLength(5)

    clock.aheadMs += 1_000
    answer = 'hold'
    const calls = callMany(50)
    await allHeld.promise
    const [shed, probing] = [calls.slice(probes), calls.slice(0, probes)]
    expect(await Promise.all(shed)).toEqual(Array(50 - probes).fill('shed'))
    expect(client.breakerState).toBe('half-open')
    expect(server.received).toHaveLength(5 + probes)
    for (const price of held) price()
    expect(await Promise.all(probing)).toEqual(Array(probes).fill('ok'))
    expect(client.breakerState).toBe('closed')
    answer = 'price'
    expect(await Promise.all(callMany(50))).toEqual(Array(50).fill('ok'))
  })

  /** Answers with an error whose body goes on, a byte every 10 ms, until the connection is gone. */
  async function dripping() {
    const drips = { written: 0 }
    const wire = await priced(
      async res => {
        res.writeHead(500)
        while (!res.destroyed) {
          res.write('x')
          drips.written++
          await passed(10)
        }
      },
      { options: NARROW },
    )
    return { ...wire, drips }
  }

  test('an error is taken from its status, without waiting for a body that never ends', async () => {
    const { fetch, attempts } = await dripping()
    await expect(fetch()).rejects.toMatchObject({ kind: 'failed' })
    expect(attempts).toEqual(['failed', 'failed'])
  })

  test('the connection of an error body that never ends is let go of', async () => {
    const { fetch, received, drips } = await dripping()
    await expect(fetch()).rejects.toMatchObject({ kind: 'failed' })
    const over = { drips: drips.written + 200 }
    const closed = Promise.all(received.map(one => one.closed)).then(() => 'closed')
    const drippedOn = (async () => {
      // A hundred on each of two connections: five times leaseMs.
      while (drips.written < over.drips) await passed(10)
      return 'dripping'
    })()
    expect(await Promise.race([closed, drippedOn])).toBe('closed')
  })
})
