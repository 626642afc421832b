import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Answer } from './answer.ts'

const ANSWER_LIMIT_MS = 5_000

/**
 * Connection: a bare socket for what no HTTP client would send: malformed bytes, half a request, many requests
 * in the same instant, a hang-up at a chosen moment. Reads answers one by one; knows `Content-Length` and
 * bodiless statuses, which is all that the API sends.
 */
export class Connection {
  readonly #socket: Socket
  readonly #onAnswer: (answer: Answer) => void
  #received = Buffer.alloc(0)
  #firstByteSentMs: number | undefined
  #closed = false

  static async open(port: number, onAnswer: (answer: Answer) => void = () => {}): Promise<Connection> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    await once(socket, 'connect')
    return new Connection(socket, onAnswer)
  }

  private constructor(socket: Socket, onAnswer: (answer: Answer) => void) {
    this.#socket = socket
    this.#onAnswer = onAnswer
    socket.on('data', chunk => {
      this.#received = Buffer.concat([this.#received, chunk])
    })
    // A reset is as good an end as any other here; what counts is what was read before.
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#closed = true
    })
  }

  /** True once both sides are done with the socket. */
  get closed(): boolean {
    return this.#closed
  }

  send(bytes: string | Uint8Array): void {
    this.#firstByteSentMs ??= performance.now()
    this.#socket.write(bytes)
  }

  /** The next answer, interim ones (1xx) included; undefined when the peer closes without one. */
  async read(limitMs = ANSWER_LIMIT_MS): Promise<Answer | undefined> {
    const deadline = AbortSignal.timeout(limitMs)
    for (;;) {
      const answer = this.#take()
      if (answer !== undefined) {
        this.#onAnswer(answer)
        return answer
      }
      if (this.#closed || this.#socket.readableEnded) return undefined
      await this.#change(deadline, limitMs)
    }
  }

  /** Hangs up: politely with FIN, or with RST. */
  destroy(how: 'fin' | 'rst' = 'fin'): void {
    if (how === 'fin') this.#socket.destroy()
    else this.#socket.resetAndDestroy()
  }

  #change(deadline: AbortSignal, limitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const expired = () => {
        stop()
        reject(new Error(`no answer on the socket within ${limitMs} ms`))
      }
      const changed = () => {
        stop()
        resolve()
      }
      const stop = () => {
        deadline.removeEventListener('abort', expired)
        for (const event of ['data', 'end', 'close']) this.#socket.off(event, changed)
      }
      if (deadline.aborted) return expired()
      deadline.addEventListener('abort', expired)
      for (const event of ['data', 'end', 'close']) this.#socket.on(event, changed)
    })
  }

  #take(): Answer | undefined {
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd < 0) return undefined
    const [statusLine = '', ...lines] = this.#received.subarray(0, headEnd).toString('latin1').split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1])
    if (!status) throw new Error(`not an HTTP answer: ${statusLine.slice(0, 80)}`)
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const colon = line.indexOf(':')
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
    }
    if (headers['transfer-encoding'] !== undefined)
      throw new Error('a chunked answer, which this reader does not know')
    const bodyStart = headEnd + 4
    const bodyEnd = bodyStart + Number(headers['content-length'] ?? 0)
    if (this.#received.length < bodyEnd) return undefined
    const body = this.#received.subarray(bodyStart, bodyEnd).toString('utf8')
    this.#received = this.#received.subarray(bodyEnd)
    const elapsedMs = performance.now() - (this.#firstByteSentMs ?? performance.now())
    if (status >= 200) this.#firstByteSentMs = undefined
    return { status, headers, body, elapsedMs }
  }
}

/** The bytes of a request. `content-length` is counted from the body unless `headers` says otherwise. */
export function requestBytes(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array = '',
): Buffer {
  const all: Record<string, string> = {
    host: '127.0.0.1',
    ...(body.length > 0 && { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  // latin1 writes each character below 256 as the byte of that value, so that a header can hold any byte.
  return Buffer.concat([
    Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'),
    Buffer.from(body),
  ])
}
