import { Agent, type IncomingMessage, request } from 'node:http'
import type { Answer } from './answer.ts'

const ANSWER_LIMIT_MS = 5_000

export type Headers = Readonly<Record<string, string | string[]>>

/**
 * Client: well-formed requests to a server on loopback, each with its whole answer and how long it took. Never
 * follows, retries or decodes anything, and gives up after five seconds, so that a check ends whatever happens.
 */
export class Client {
  readonly #port: number
  readonly #token: string | undefined
  readonly #agent = new Agent({ keepAlive: true })
  readonly #onAnswer: (answer: Answer) => void

  constructor(port: number, token: string | undefined, onAnswer: (answer: Answer) => void) {
    this.#port = port
    this.#token = token
    this.#onAnswer = onAnswer
  }

  get(path: string, headers: Headers = {}): Promise<Answer> {
    return this.send('GET', path, headers)
  }

  /** Posts an order. A string or bytes go as they are, anything else as JSON; `headers` override the usual ones. */
  order(key: string, body: unknown, headers: Headers = {}): Promise<Answer> {
    const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
    const usual = { 'content-type': 'application/json', 'idempotency-key': key }
    return this.send('POST', '/v1/orders', { ...usual, ...headers }, bytes)
  }

  /** Cancels an order; without a body, as most would. */
  cancel(key: string, id: string, headers: Headers = {}, body?: string): Promise<Answer> {
    return this.send('POST', `/v1/orders/${id}/cancel`, { 'idempotency-key': key, ...headers }, body)
  }

  /** Lists orders by a query that is percent-encoded here. */
  list(query: Readonly<Record<string, string>>, headers: Headers = {}): Promise<Answer> {
    return this.get(`/v1/orders?${new URLSearchParams(query)}`, headers)
  }

  send(method: string, path: string, headers: Headers = {}, body?: string | Uint8Array): Promise<Answer> {
    const credential = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    return new Promise((resolve, reject) => {
      const startedMs = performance.now()
      const outgoing = request({
        host: '127.0.0.1',
        port: this.#port,
        method,
        path,
        agent: this.#agent,
        headers: { ...credential, ...length, ...headers },
        signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      })
      outgoing.on('error', error => reject(new Error(`${method} ${path} got no answer: ${error.message}`)))
      outgoing.on('response', incoming => {
        whole(incoming).then(body => {
          const { statusCode: status = 0, headers } = incoming
          const answer = { status, headers: flat(headers), body, elapsedMs: performance.now() - startedMs }
          this.#onAnswer(answer)
          resolve(answer)
        }, reject)
      })
      outgoing.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

async function whole(incoming: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function flat(headers: IncomingMessage['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}
