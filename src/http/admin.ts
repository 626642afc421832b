import { hash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Problem } from '../errors/index.ts'
import { traceFrom } from '../runtime/index.ts'
import { answerProblem, writeResponse } from './response.ts'

/**
 * The admin listener: metrics and the effective configuration, apart from the API so that no load on one starves
 * the other's port and no balancer can reach it by accident.
 */
export function createAdminServer(deps: {
  /** When set, everything but `/metrics` needs it as a bearer token. */
  adminToken: string | undefined
  /** The metrics in Prometheus' text format. */
  metrics: () => Promise<{ contentType: string; text: string }>
  /** The effective configuration, secrets hidden. */
  config: object
  onFault: (error: unknown, traceId: string) => void
}): Server {
  return createServer((req, res) => {
    const about = {
      traceId: traceFrom(req.headers.traceparent as string | undefined).traceId,
      closing: false,
    }
    handle(req, res, about).catch((error: unknown) => {
      if (!(error instanceof Problem)) deps.onFault(error, about.traceId)
      answerProblem(res, error instanceof Problem ? error : new Problem('internal'), about)
    })
  })

  async function handle(
    req: IncomingMessage,
    res: ServerResponse,
    about: { traceId: string; closing: boolean },
  ) {
    req.resume()
    const path = req.url?.split('?', 1)[0]
    if (path === '/metrics') {
      onlyReading(req)
      const { contentType, text } = await deps.metrics()
      return writeResponse(res, 200, ['Content-Type', contentType, 'Cache-Control', 'no-store'], text, about)
    }
    authorise(req, deps.adminToken)
    if (path !== '/config') throw new Problem('not-found')
    onlyReading(req)
    const body = JSON.stringify(deps.config)
    writeResponse(res, 200, ['Content-Type', 'application/json', 'Cache-Control', 'no-store'], body, about)
  }
}

function onlyReading(req: IncomingMessage): void {
  if (req.method === 'GET' || req.method === 'HEAD') return
  throw new Problem('method-not-allowed', {}, { Allow: 'GET, HEAD' })
}

function authorise(req: IncomingMessage, adminToken: string | undefined): void {
  if (adminToken === undefined) return
  // Digests have one length, which timingSafeEqual asks for.
  const sent = hash('sha256', req.headers.authorization ?? '', 'buffer')
  const wanted = hash('sha256', `Bearer ${adminToken}`, 'buffer')
  if (timingSafeEqual(sent, wanted)) return
  throw new Problem('unauthenticated', {}, { 'WWW-Authenticate': 'Bearer realm="punctual-admin"' })
}
