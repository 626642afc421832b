import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type Code, Problem } from '../errors/index.ts'
import { randomHex } from '../runtime/index.ts'
import type { Connection } from './connection.ts'
import { exchangeOf } from './exchange.ts'
import { PROBLEM_TYPE, problemBody } from './problem.ts'

/**
 * Answers bytes that are no HTTP request, once, and closes the connection behind the answer.
 *
 *   before the first byte           a connection that never spoke made no request: closed without an answer
 *   behind whole requests           their answers come first: a refusal written over one of them would tell the caller
 *                                   that an order failed which was then stored
 *   within a request's body         the end of the stream is a hang-up; anything else is answered by the request itself,
 *                                   when its turn has come
 *   within the body of a request    nothing more is read
 *   that has its answer
 */
export function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  { socket, connection }: { socket: Socket; connection: Connection },
  report: (problem: Problem, traceId: string) => void,
): void {
  if (!socket.writable || error.code === 'ECONNRESET' || socket.bytesRead === 0) {
    socket.destroy()
    return
  }
  const problem = new Problem(BROKEN[error.code ?? ''] ?? 'malformed-request')
  const turn = connection.unfinished
  if (turn?.res.headersSent) return connection.stopReading()
  const isHangUp = error.code === 'HPE_INVALID_EOF_STATE'
  if (turn && connection.isInProgress(turn)) {
    if (isHangUp) {
      socket.destroy()
      return
    }
    turn.broken = problem
    exchangeOf(turn.req).refuse(problem)
    return
  }
  if (isHangUp) return connection.afterAnswers(() => socket.destroy())
  if (turn) {
    // The time of a body that nobody reads is not counted against its sender.
    if (problem.code !== 'request-timeout') turn.broken = problem
    return
  }
  connection.afterAnswers(() => {
    const traceId = randomHex(16)
    const body = problemBody(problem.code, traceId)
    const { status } = problem
    connection.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${PROBLEM_TYPE}\r\nCache-Control: no-store\r\n` +
        `X-Trace-Id: ${traceId}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    report(problem, traceId)
  })
}

const BROKEN: Readonly<Record<string, Code>> = {
  HPE_HEADER_OVERFLOW: 'headers-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
}
