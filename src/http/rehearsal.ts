import { hash, randomBytes, randomUUID } from 'node:crypto'
import { Agent, type IncomingMessage, request } from 'node:http'
import { newId } from '../domain/index.ts'
import { drawRandom } from '../runtime/index.ts'
import { ApiKeys } from './auth.ts'

/**
 * Rehearsal: requests of our own over the real listener, before any other is taken. They are known by a key that is
 * drawn for this process and good for nothing else.
 */
export class Rehearsal {
  /** They alone know the key. */
  readonly apiKeys: ApiKeys
  readonly #authorization: string
  // Not the global one, which the environment may have told to go through a proxy.
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  #ordered = 0

  constructor() {
    const key = randomBytes(32).toString('base64url')
    const sha256 = hash('sha256', key, 'hex')
    this.#authorization = `Bearer ${key}`
    this.apiKeys = new ApiKeys([
      { id: TENANT, tenant: TENANT, sha256, scopes: ['orders:read', 'orders:write'], view: 'full' },
    ])
  }

  admits(req: IncomingMessage): boolean {
    return req.headers.authorization === this.#authorization
  }

  /** What must work before anybody is served. */
  steps(host: string, port: number): readonly RehearsalStep[] {
    const to = { host: LOOPBACK[host] ?? host, port }
    const step = (name: string, expected: number, ask: () => Ask): RehearsalStep => ({
      name,
      play: async signal => {
        const { status, code } = await this.#send({ ...ask(), ...to, signal })
        return status === expected ? undefined : code
      },
    })
    return [
      step('an invalid body', 400, () => ({ method: 'POST', path: ORDERS, body: '{' })),
      step('an unknown order', 404, () => ({ method: 'GET', path: `${ORDERS}/${newId(0, drawRandom(16))}` })),
      step('a document', 200, () => ({ method: 'GET', path: '/problems/not-found' })),
      step('an order', 201, () => this.#order()),
    ]
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Each of the first asks for other prices than those before it; the rest finds its prices at hand, as most do. */
  #order(): Ask {
    const nth = Math.min(++this.#ordered, PRICED)
    const items = ['A', 'B'].map(which => ({ sku: `WARM-UP-${which}-${nth}`, quantity: 1 }))
    const body = JSON.stringify({ customerId: TENANT, currency: 'USD', items })
    return { method: 'POST', path: ORDERS, body }
  }

  #send({ body, ...options }: Sent): Promise<Answer> {
    const headers: Record<string, string> = { Authorization: this.#authorization }
    if (body !== undefined) {
      headers['Content-Type'] = 'application/json'
      headers['Content-Length'] = String(body.length)
      headers['Idempotency-Key'] = randomUUID()
    }
    return new Promise(resolve => {
      const req = request({ ...options, headers, agent: this.#agent })
      req.on('error', () => resolve(NO_ANSWER))
      req.on('response', res => {
        let text = ''
        res.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        res.on('error', () => resolve(NO_ANSWER))
        res.on('end', () => {
          const code = /"code":"([a-z-]+)"/.exec(text)?.[1] ?? 'another answer than expected'
          resolve({ status: res.statusCode ?? 0, code })
        })
      })
      req.end(body)
    })
  }
}

/** A step of the warm-up: what went wrong, in words fit for a caller; undefined when nothing did. */
export interface RehearsalStep {
  readonly name: string
  play(signal: AbortSignal): Promise<string | undefined>
}

interface Ask {
  readonly method: string
  readonly path: string
  readonly body?: string
}

interface Sent extends Ask {
  readonly host: string
  readonly port: number
  readonly signal: AbortSignal
}

interface Answer {
  readonly status: number
  /** Of the problem that it is. */
  readonly code: string
}

const NO_ANSWER: Answer = { status: 0, code: 'no answer' }
const TENANT = 'warm-up'
const ORDERS = '/v1/orders'
const PRICED = 20
/** Addresses that name every interface, and how such a listener is reached. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
