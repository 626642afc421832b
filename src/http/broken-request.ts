import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { CODES, type Code, Problem } from '../errors/index.ts'
import { randomHex } from '../runtime/index.ts'
import { exchangeOf } from './exchange.ts'
import { PROBLEM_TYPE, problemBody } from './problem.ts'

/**
 * Answers bytes that are no HTTP, and closes the connection behind the answer.
 *
 *   behind a whole request      its answer is owed first: written over it, ours would tell the caller that an order
 *                               failed which was then stored
 *   within a request's body     the end of the stream is a hang-up, and nothing is written; anything else is answered
 *                               by the request's own exchange
 *   where a request begins      there is only a socket to write to
 */
export function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  report: (code: Code, traceId: string) => void,
): void {
  // The response that the socket is busy with, where Node.js keeps it.
  const owed = (socket as { _httpMessage?: ServerResponse })._httpMessage
  if (owed?.req.complete) {
    // Told again for each further chunk; once is enough.
    if (waiting.has(socket)) return
    waiting.add(socket)
    owed.once('close', () => {
      waiting.delete(socket)
      answerBrokenRequest(error, socket, report)
    })
    return
  }
  if (owed?.headersSent || !socket.writable || HANG_UPS.has(error.code ?? '')) {
    socket.destroy()
    return
  }
  const code = BROKEN[error.code ?? ''] ?? 'malformed-request'
  if (owed) {
    owed.once('close', () => socket.destroy())
    exchangeOf(owed.req).refuse(new Problem(code))
    return
  }
  const traceId = randomHex(16)
  const body = problemBody(code, traceId)
  const { status } = CODES[code]
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${PROBLEM_TYPE}\r\nCache-Control: no-store\r\n` +
      `X-Trace-Id: ${traceId}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  report(code, traceId)
}

const waiting = new WeakSet<Duplex>()
const HANG_UPS: ReadonlySet<string> = new Set(['ECONNRESET', 'HPE_INVALID_EOF_STATE'])

const BROKEN: Readonly<Record<string, Code>> = {
  HPE_HEADER_OVERFLOW: 'headers-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
}
