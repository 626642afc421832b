import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { until } from './until.ts'

const PATH = '/hook?of=acceptance'

/** What the consumer does with one delivery. */
export type Reaction =
  /** Takes the event and answers 2xx. */
  | { readonly kind: 'accept'; readonly status?: number; readonly delayMs?: number }
  /** Takes nothing and says so. */
  | { readonly kind: 'say'; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** Reads the request and never answers. */
  | { readonly kind: 'stall' }
  /** Begins a 200 and never ends it. */
  | { readonly kind: 'trickle' }
  /** Begins a 200 and closes the connection in the middle of it. */
  | { readonly kind: 'truncate' }
  | { readonly kind: 'reset' }

export interface CloudEvent {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly data: { readonly reference?: string }
  readonly [attribute: string]: unknown
}

/** One delivery as it came in. */
export interface Arrival {
  readonly event: CloudEvent
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly atMs: number
  readonly reaction: Reaction
}

/**
 * Consumer: a receiver of events as the contract asks for one: it verifies each signature, drops repeats by `id`, and
 * does with each delivery what a check tells it to. Whatever no delivery may ever be, it keeps in `faults`: unsigned,
 * another event under a known id, another id for a known event, an event ahead of an earlier one of its order.
 */
export class Consumer {
  /** Asked at each delivery; `nth` counts those of one event from 1. */
  react: (event: CloudEvent, nth: number) => Reaction = () => ({ kind: 'accept' })
  readonly secret = `whsec_${Buffer.alloc(32, 'acceptance').toString('base64')}`
  readonly arrivals: Arrival[] = []
  readonly faults: string[] = []
  /** The events that it has taken, each once, by their orders. */
  readonly taken = new Map<string, CloudEvent[]>()
  readonly #webhook = new Webhook(this.secret)
  readonly #bodies = new Map<string, string>()
  readonly #ids = new Map<string, string>()
  #server = this.#fresh()
  #port = 0

  static async listen(): Promise<Consumer> {
    const consumer = new Consumer()
    await consumer.#listen()
    return consumer
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}${PATH}`
  }

  get port(): number {
    return this.#port
  }

  /** The types of the events taken of an order, in the order of their coming. */
  typesOf(subject: string): readonly string[] {
    return (this.taken.get(subject) ?? []).map(({ type }) => type)
  }

  /** The deliveries of one event. */
  arrivalsOf(id: string): readonly Arrival[] {
    return this.arrivals.filter(({ event }) => event.id === id)
  }

  /** Waits until it has taken an event of this type of an order, and gives it. */
  took(subject: string, type = 'order.created', limitMs?: number): Promise<CloudEvent> {
    const find = () => this.taken.get(subject)?.find(event => event.type === type)
    return until(`${type} of ${subject}`, find, limitMs)
  }

  /** Waits until `count` deliveries have come, however they ended. */
  arrived(count: number, limitMs?: number): Promise<boolean> {
    return until(`${count} deliveries`, () => this.arrivals.length >= count, limitMs)
  }

  /** Closes its port and every connection; nobody listens there until it comes back. */
  async disappear(): Promise<void> {
    const server = this.#server
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }

  /** Listens again, on the port that it had. */
  async reappear(): Promise<void> {
    this.#server = this.#fresh()
    await this.#listen()
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.disappear()
  }

  async #listen(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  #fresh() {
    return createServer((incoming, outgoing) => {
      // A relay that leaves in the middle of its delivery is no fault of the consumer.
      this.#serve(incoming, outgoing).catch(() => outgoing.destroy())
    })
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString('utf8')
    const { method, url, headers } = incoming
    const event = this.#verified(body, headers)
    if (event === undefined) return answer(outgoing, 401)
    if (method !== 'POST' || url !== PATH) this.faults.push(`a delivery by ${method} to ${url}`)
    this.#compare(event, body)
    const reaction = this.react(event, this.arrivalsOf(event.id).length + 1)
    this.arrivals.push({ event, headers, body, atMs: performance.now(), reaction })
    switch (reaction.kind) {
      case 'accept':
        if (reaction.delayMs !== undefined) await new Promise(done => setTimeout(done, reaction.delayMs))
        // Whoever has gone meanwhile must come again.
        if (outgoing.destroyed) return
        this.#take(event)
        return answer(outgoing, reaction.status ?? 204)
      case 'say':
        return answer(outgoing, reaction.status, reaction.headers)
      case 'stall':
        return
      case 'trickle':
        outgoing.writeHead(200, { 'content-length': '64' })
        outgoing.write('{')
        return
      case 'truncate':
        outgoing.writeHead(200, { 'content-length': '64' })
        outgoing.write('{', () => outgoing.destroy())
        return
      case 'reset':
        incoming.socket.resetAndDestroy()
        return
    }
  }

  #verified(body: string, headers: IncomingHttpHeaders): CloudEvent | undefined {
    try {
      const event = this.#webhook.verify(body, headers as Record<string, string>) as CloudEvent
      if (headers['webhook-id'] === event.id) return event
      this.faults.push(`the webhook-id ${headers['webhook-id']} for the event ${event.id}`)
    } catch (error) {
      this.faults.push(`a delivery that does not verify: ${(error as Error).message}`)
    }
    return undefined
  }

  #compare(event: CloudEvent, body: string): void {
    const { id, type, subject } = event
    const known = this.#bodies.get(id) ?? body
    if (known !== body) this.faults.push(`${id} came as ${known}, then as ${body}`)
    this.#bodies.set(id, known)
    const name = `${type} of ${subject}`
    const knownId = this.#ids.get(name) ?? id
    if (knownId !== id) this.faults.push(`${name} came as ${knownId}, then as ${id}`)
    this.#ids.set(name, knownId)
    if (type !== 'order.created' && !this.typesOf(subject).includes('order.created')) {
      this.faults.push(`${name} came before order.created was taken`)
    }
  }

  #take(event: CloudEvent): void {
    const events = this.taken.get(event.subject) ?? []
    if (!events.some(({ id }) => id === event.id)) events.push(event)
    this.taken.set(event.subject, events)
  }
}

function answer(
  outgoing: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  outgoing.writeHead(status, { 'content-length': '0', ...headers })
  outgoing.end()
}
