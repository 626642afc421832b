import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './until.ts'

/** What the stand-in does with the calls that reach it from now on. */
export type Behaviour =
  | { readonly kind: 'answer'; readonly delayMs?: number }
  /** Answers with this status, body and type, whatever was asked. */
  | { readonly kind: 'say'; readonly status: number; readonly body: string; readonly contentType?: string }
  /** Promises more bytes than it sends, then closes. */
  | { readonly kind: 'truncate' }
  | { readonly kind: 'reset' }
  /** Never answers; `release()` lets the answers go that are still wanted, with the prices of when they were asked for. */
  | { readonly kind: 'hold' }

export interface Call {
  readonly headers: IncomingHttpHeaders
  readonly skus: readonly string[]
  /** True once the caller has left before it was answered. */
  abandoned: boolean
}

/**
 * Pricing stand-in: the pricing service of the contract (`POST /v1/prices:batch`), which does at each moment what
 * a check tells it to, and remembers who called. Any SKU has a price, except those that begin with `NONE`, until it is
 * given another one.
 */
export class PricingStandIn {
  behaviour: Behaviour = { kind: 'answer' }
  /** By SKU, in minor units: what is asked for one piece from now on. */
  readonly prices = new Map<string, number>()
  readonly calls: Call[] = []
  /** How many have come, those of warm-ups included. */
  total = 0
  readonly #server = createServer((incoming, outgoing) => {
    // A caller that leaves in the middle of its request is no fault of the stand-in.
    this.#serve(incoming, outgoing).catch(() => outgoing.destroy())
  })
  #held: (() => void)[] = []

  static async listen(): Promise<PricingStandIn> {
    const standIn = new PricingStandIn()
    standIn.#server.listen(0, '127.0.0.1')
    await once(standIn.#server, 'listening')
    return standIn
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Waits until `count` calls have come since it was made, and gives the last. */
  async called(count: number): Promise<Call> {
    return until(`call ${count} to pricing`, () => this.calls[count - 1])
  }

  /** Answers everything held, and whatever comes from now on. */
  release(): void {
    this.behaviour = { kind: 'answer' }
    for (const answer of this.#held) answer()
    this.#held = []
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const { skus } = JSON.parse(Buffer.concat(chunks).toString()) as { skus: string[] }
    const call: Call = { headers: incoming.headers, skus, abandoned: false }
    this.calls.push(call)
    this.total++
    outgoing.on('close', () => {
      call.abandoned = !outgoing.writableFinished
    })
    const behaviour = this.behaviour
    const list = JSON.stringify(this.#priceList(skus))
    const answer = () => say(outgoing, 200, list)
    switch (behaviour.kind) {
      case 'answer':
        if (behaviour.delayMs === undefined) answer()
        else setTimeout(answer, behaviour.delayMs)
        return
      case 'say':
        return say(outgoing, behaviour.status, behaviour.body, behaviour.contentType)
      case 'truncate':
        outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': '4096' })
        outgoing.write('{"prices":[', () => outgoing.destroy())
        return
      case 'reset':
        incoming.socket.resetAndDestroy()
        return
      case 'hold':
        this.#held.push(answer)
        return
    }
  }

  #priceList(skus: readonly string[]) {
    const known = (sku: string) => this.prices.has(sku) || !sku.startsWith('NONE')
    return {
      prices: skus.filter(known).map(sku => ({ sku, unitPrice: this.prices.get(sku) ?? unitPriceOf(sku) })),
      unknown: skus.filter(sku => !known(sku)),
    }
  }
}

/** What the stand-in asks for one piece unless it is told otherwise, in minor units. */
export function unitPriceOf(sku: string): number {
  return 100 + (sku.length % 50)
}

function say(outgoing: ServerResponse, status: number, body: string, contentType = 'application/json'): void {
  if (outgoing.destroyed) return
  outgoing.writeHead(status, {
    'content-type': contentType,
    'content-length': String(Buffer.byteLength(body)),
  })
  outgoing.end(body)
}
