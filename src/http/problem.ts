import { CODES, type Code, type Problem, type ProblemExtensions } from '../errors/index.ts'

/**
 * Problem documents (RFC 9457). Made from the table of codes and the few extensions a `Problem` may carry, so
 * that no message of an exception can reach a caller.
 */
export function problemBody(code: Code, traceId: string, extensions: ProblemExtensions = {}): string {
  const { status, title, detail } = CODES[code]
  return JSON.stringify({ type: `/problems/${code}`, title, status, code, detail, ...extensions, traceId })
}

export const PROBLEM_TYPE = 'application/problem+json'

/** Seconds for `Retry-After`, from milliseconds; never below 1. */
export function retryAfterSeconds(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
}

/** When to come back after a 503 that carries no figure of its own. */
export const DEFAULT_RETRY_AFTER_MS = 1000

/** The headers of a problem, as a flat list of names and values. */
export function problemHeaders(problem: Problem): string[] {
  const headers = ['Content-Type', PROBLEM_TYPE, 'Cache-Control', 'no-store']
  if (problem.status === 429 || problem.status === 503) {
    headers.push('Retry-After', retryAfterSeconds(problem.extensions.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS))
  }
  for (const [name, value] of Object.entries(problem.headers)) headers.push(name, value)
  return headers
}
