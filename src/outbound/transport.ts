import { Pool } from 'undici'
import { OutboundFailure, type PriceCall, type PriceList } from './call.ts'
import type { OutboundOptions } from './options.ts'
import { readPriceList } from './price-answer.ts'

/**
 * Transport: one HTTP exchange with the pricing service, on undici with every limit set here. A pool of its own
 * for one origin is never routed through a proxy, whatever the environment says. Its own timeouts are only a
 * net: the attempt's signal always fires first.
 */
export class Transport {
  readonly #pool: Pool
  readonly #path: string
  readonly #leaseMs: number

  constructor(baseUrl: string, options: OutboundOptions) {
    const url = new URL(baseUrl)
    this.#leaseMs = options.leaseMs
    this.#path = `${url.pathname.replace(/\/+$/, '')}/v1/prices:batch`
    this.#pool = new Pool(url.origin, {
      connections: options.maxConcurrent,
      pipelining: 1,
      connect: { timeout: options.leaseMs },
      headersTimeout: options.leaseMs,
      bodyTimeout: options.leaseMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      maxResponseSize: MAX_RESPONSE_BYTES,
    })
  }

  /** Throws `OutboundFailure`, or the signal's reason. */
  async send(
    call: Pick<PriceCall, 'currency' | 'skus'>,
    signal: AbortSignal,
    attempt: { id: string; traceparent: string; leftMs: number },
  ): Promise<PriceList> {
    const { currency, skus } = call
    const { statusCode, headers, body } = await this.#pool.request({
      method: 'POST',
      path: this.#path,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        traceparent: attempt.traceparent,
        'request-budget-ms': String(Math.max(1, Math.floor(attempt.leftMs))),
        'x-attempt-id': attempt.id,
      },
      body: JSON.stringify({ currency, skus }),
      signal,
    })
    if (statusCode !== 200) {
      // Read away beside us, so that the connection can be used again: a slow error body is not waited for, and
      // one that drips does not hold its connection.
      body.dump({ limit: MAX_ERROR_BYTES, signal: AbortSignal.timeout(this.#leaseMs) }).catch(() => undefined)
      throw new OutboundFailure(REFUSALS.has(statusCode) ? 'refused' : 'failed')
    }
    const type = headers['content-type']
    const text = await body.text()
    if (typeof type !== 'string' || !JSON_TYPE.test(type)) throw new OutboundFailure('failed')
    return readPriceList(text, { currency, skus })
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }
}

// What says that this very request is wrong. Any other 4xx (a key that has expired, a path that has moved) is trouble
// with the service, and the breaker's business.
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422])
const JSON_TYPE = /^application\/json\s*(;|$)/i
// 50 SKUs of 64 characters with their prices take 6 KB; a service that sends more than 256 KB is not answering.
const MAX_RESPONSE_BYTES = 262_144
const MAX_ERROR_BYTES = 4_096
// Shorter than the 5 s after which a plain Node.js server closes an idle connection under our request.
const KEEP_ALIVE_MS = 4_000
