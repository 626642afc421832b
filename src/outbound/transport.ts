import { Pool } from 'undici'
import { isUnitPrice } from '../domain/index.ts'
import { OutboundFailure, type PriceCall, type PriceList } from './call.ts'
import type { OutboundOptions } from './options.ts'

/**
 * Transport: one HTTP exchange with the pricing service, on undici with every limit set here. A pool of its own
 * for one origin is never routed through a proxy, whatever the environment says. Its own timeouts are only a
 * net: the attempt's signal always fires first.
 */
export class Transport {
  readonly #pool: Pool
  readonly #path: string

  constructor(baseUrl: string, options: OutboundOptions) {
    const url = new URL(baseUrl)
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
    call: PriceCall,
    attempt: { id: string; traceparent: string; leftMs: number },
  ): Promise<PriceList> {
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
      body: JSON.stringify({ currency: call.currency, skus: call.skus }),
      signal: call.signal,
    })
    if (statusCode !== 200) {
      await body.dump()
      throw new OutboundFailure(
        statusCode >= 400 && statusCode < 500 && statusCode !== 429 ? 'refused' : 'failed',
      )
    }
    const type = headers['content-type']
    const text = await body.text()
    if (typeof type !== 'string' || !JSON_TYPE.test(type)) throw new OutboundFailure('failed')
    return readPriceList(text, call.skus)
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }
}

/**
 * Believes nothing: every SKU asked for must come back once, with a usable price or as unknown. What was not
 * asked for is ignored.
 */
function readPriceList(text: string, asked: readonly string[]): PriceList {
  const answer = parseObject(text)
  if (!Array.isArray(answer.prices) || !Array.isArray(answer.unknown)) throw new OutboundFailure('failed')
  const prices = new Map<string, number>()
  for (const entry of answer.prices as unknown[]) {
    const { sku, unitPrice } = (entry ?? {}) as { sku?: unknown; unitPrice?: unknown }
    if (typeof sku !== 'string' || !asked.includes(sku)) continue
    if (!isUnitPrice(unitPrice) || prices.has(sku)) throw new OutboundFailure('failed')
    prices.set(sku, unitPrice)
  }
  const saidUnknown = new Set<unknown>(answer.unknown)
  if (!asked.every(sku => prices.has(sku) !== saidUnknown.has(sku))) throw new OutboundFailure('failed')
  return { prices, unknown: asked.filter(sku => saidUnknown.has(sku)) }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch (error) {
    throw new OutboundFailure('failed', { cause: error })
  }
  throw new OutboundFailure('failed')
}

const JSON_TYPE = /^application\/json\s*(;|$)/i
// 50 SKUs of 64 characters with their prices take 6 KB; a service that sends more than 256 KB is not answering.
const MAX_RESPONSE_BYTES = 262_144
// Shorter than the 5 s after which a plain Node.js server closes an idle connection under our request.
const KEEP_ALIVE_MS = 4_000
