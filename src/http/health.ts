import type { IncomingMessage, ServerResponse } from 'node:http'
import { Problem } from '../errors/index.ts'
import { answerProblem, writeResponse } from './response.ts'

/** What readiness says: the phase, and what each check says of itself. */
export interface Readiness {
  readonly status: 'ready' | 'warming' | 'draining' | 'degraded'
  readonly phase: string
  readonly checks: Readonly<Record<string, string>>
}

/** True for a path under `/health`, which is never limited, needs no key and holds no lease. */
export function isHealthPath(url: string | undefined): boolean {
  return url?.startsWith('/health/') ?? false
}

/** Answers `/health/live` (touches nothing but the process) and `/health/ready`. */
export function answerHealth(
  req: IncomingMessage,
  res: ServerResponse,
  about: { traceId: string; closing: boolean },
  readiness: () => Readiness,
): void {
  const path = req.url?.split('?', 1)[0]
  if (path !== '/health/live' && path !== '/health/ready')
    return answerProblem(res, new Problem('not-found'), about)
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    return answerProblem(res, new Problem('method-not-allowed', {}, { Allow: 'GET, HEAD' }), about)
  }
  if (path === '/health/live') return writeResponse(res, 200, HEADERS, '{"status":"live"}', about)
  const { status, phase, checks } = readiness()
  const body = JSON.stringify({ status, phase, checks })
  if (status === 'ready') return writeResponse(res, 200, HEADERS, body, about)
  writeResponse(res, 503, [...HEADERS, 'Retry-After', '1'], body, about)
}

const HEADERS = ['Content-Type', 'application/json', 'Cache-Control', 'no-store']
