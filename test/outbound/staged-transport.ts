import { OutboundFailure, type PriceCall, type PriceList } from '../../src/outbound/call.ts'
import { readPriceList } from '../../src/outbound/price-answer.ts'

/** Who plays pricing; the tests put themselves here. */
export const stage = {
  onSend: (_exchange: Exchange): void => {
    throw new Error('nobody plays pricing')
  },
}

/** One exchange with pricing, which ends when the test says so. */
export class Exchange {
  readonly currency: string
  readonly skus: readonly string[]
  readonly signal: AbortSignal
  readonly leftMs: number
  /** When the call that it serves is over; asked again, it may have moved. */
  readonly endsAtMs: () => number
  readonly #result = Promise.withResolvers<PriceList>()

  constructor(call: PriceCall, signal: AbortSignal, leftMs: number) {
    this.currency = call.currency
    this.skus = [...call.skus]
    this.signal = signal
    this.leftMs = leftMs
    this.endsAtMs = () => call.endsAtMs
  }

  get result(): Promise<PriceList> {
    return this.#result.promise
  }

  /** Pricing answers 200 with this text, which is read as every answer is. */
  say(text: string): void {
    try {
      this.#result.resolve(readPriceList(text, this))
    } catch (error) {
      this.#result.reject(error)
    }
  }

  /** Pricing answers with a price for each SKU. */
  price(priceOf: (sku: string) => number = () => 100): void {
    this.say(JSON.stringify({ prices: this.skus.map(sku => ({ sku, unitPrice: priceOf(sku) })) }))
  }

  refuse(): void {
    this.#result.reject(new OutboundFailure('refused'))
  }

  reset(): void {
    this.#result.reject(new Error('ECONNRESET'))
  }

  /** Does as an HTTP client does: fails with the reason of its signal. */
  obey(): void {
    this.signal.addEventListener('abort', () => this.#result.reject(this.signal.reason), { once: true })
  }
}

/** Stands in for the transport: the exchange is the test's. */
export class Transport {
  send(call: PriceCall, signal: AbortSignal, { leftMs }: { leftMs: number }): Promise<PriceList> {
    const exchange = new Exchange(call, signal, leftMs)
    stage.onSend(exchange)
    return exchange.result
  }

  async close(): Promise<void> {}
}
