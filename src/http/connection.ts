import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Connections while draining. `Connection: close` ends the socket behind the answer that says it, so only the
 * newest request of a connection may say it: those pipelined behind would be carried out and never answered. And
 * what comes after it was said is not processed (RFC 9112, section 9.6): its client knows that, and asks again.
 */
export class Connections {
  readonly #newest = new WeakMap<Socket, IncomingMessage>()
  readonly #closing = new WeakSet<Socket>()

  /** Takes note of a request; false when its connection has been told to close. */
  arrived(req: IncomingMessage): boolean {
    if (this.#closing.has(req.socket)) return false
    this.#newest.set(req.socket, req)
    return true
  }

  /** Whether the answer to `req` may tell its connection to close; from then on it counts as told. */
  close(req: IncomingMessage): boolean {
    if (this.#newest.get(req.socket) !== req) return false
    this.#closing.add(req.socket)
    return true
  }
}
