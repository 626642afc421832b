import { Problem } from '../errors/index.ts'

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

/**
 * The answer of `/health/live` (which touches nothing but the process) and `/health/ready`.
 *
 * Throws `not-found` and `method-not-allowed`.
 */
export function healthAnswer(
  { method, url }: { method?: string | undefined; url?: string | undefined },
  readiness: () => Readiness,
): { status: number; headers: readonly string[]; body: string } {
  const path = url?.split('?', 1)[0]
  if (path !== '/health/live' && path !== '/health/ready') throw new Problem('not-found')
  if (method !== 'GET' && method !== 'HEAD') {
    throw new Problem('method-not-allowed', {}, { Allow: 'GET, HEAD' })
  }
  if (path === '/health/live') return { status: 200, headers: HEADERS, body: '{"status":"live"}' }
  const { status, phase, checks } = readiness()
  const body = JSON.stringify({ status, phase, checks })
  if (status === 'ready') return { status: 200, headers: HEADERS, body }
  return { status: 503, headers: [...HEADERS, 'Retry-After', '1'], body }
}

const HEADERS = ['Content-Type', 'application/json', 'Cache-Control', 'no-store']
