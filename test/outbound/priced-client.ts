import type { ServerResponse } from 'node:http'
import { onTestFinished } from 'vitest'
import { outboundChannels, type PriceShelf, PricingClient } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { pricingServer, type Received } from './pricing-server.ts'

export const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
// Wide enough that only what is meant to hang runs into them, on a loaded machine too.
export const WIDE = { leaseMs: 20_000, totalMs: 15_000, attemptMs: 5_000, retryDelayMs: 1 }
export const NARROW = { leaseMs: 200, totalMs: 100, attemptMs: 40, retryDelayMs: 1 }

/** Remembers nothing. */
export const EMPTY_SHELF: PriceShelf = { get: () => undefined, set: () => {}, delete: () => {} }

/** A client of a server that answers as `answer` does; both go with the test. */
export async function priced(
  answer: (res: ServerResponse, received: Received) => void,
  {
    prefix = '',
    options = WIDE,
    skus = ['SKU-1', 'SKU-2'],
    shelf = EMPTY_SHELF,
    traceparent = `00-${TRACE_ID}-${'b'.repeat(16)}-01`,
  } = {},
) {
  const server = await pricingServer(answer)
  onTestFinished(() => server.close())
  const channels = outboundChannels()
  const attempts: string[] = []
  const calls: string[] = []
  channels.attempt.subscribe(({ result }) => attempts.push(result))
  channels.call.subscribe(({ result }) => calls.push(result))
  const client = new PricingClient(server.baseUrl + prefix, outboundOptions.parse(options), {
    channels,
    clock: systemClock,
    shelf,
  })
  onTestFinished(() => client.close())
  const fetchOf = (skus: readonly string[], signal = new AbortController().signal, neededInMs = 60_000) =>
    client.fetch({
      currency: 'USD',
      skus,
      neededByMs: systemClock.nowMs() + neededInMs,
      signal,
      traceparent,
    })
  const fetch = (signal?: AbortSignal, neededInMs?: number) => fetchOf(skus, signal, neededInMs)
  return { fetch, fetchOf, received: server.received, attempts, calls }
}

export const GOOD = {
  prices: [
    { sku: 'SKU-1', unitPrice: 250 },
    { sku: 'SKU-2', unitPrice: 0 },
  ],
  unknown: [],
}
