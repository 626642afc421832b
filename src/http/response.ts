import type { ServerResponse } from 'node:http'
import type { Problem } from '../errors/index.ts'
import { problemBody, problemHeaders } from './problem.ts'

/** Writes head and body in one go. A status that carries no body gets neither body nor length. */
export function writeResponse(
  res: ServerResponse,
  status: number,
  headers: readonly string[],
  body: string,
  about: { traceId: string; closing: boolean },
): void {
  const head = [...headers, 'X-Trace-Id', about.traceId]
  if (about.closing) head.push('Connection', 'close')
  if (status === 304) {
    res.writeHead(status, head)
    res.end()
    return
  }
  head.push('Content-Length', String(Buffer.byteLength(body)))
  res.writeHead(status, head)
  res.end(body)
}

/** Writes a problem outside any exchange. */
export function answerProblem(
  res: ServerResponse,
  problem: Problem,
  about: { traceId: string; closing: boolean },
): void {
  const body = problemBody(problem.code, about.traceId, problem.extensions)
  writeResponse(res, problem.status, problemHeaders(problem), body, about)
}
