import { hash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { z } from 'zod'
import { Problem } from '../errors/index.ts'
import { traceFrom } from '../runtime/index.ts'
import { parseBody, requireJson } from './json-body.ts'
import { readBody } from './read-body.ts'
import { answerProblem, writeResponse } from './response.ts'

/**
 * The admin listener: metrics, the effective configuration and what operators may do, apart from the API so that no
 * load on one starves the other's port and no balancer can reach it by accident. What changes something takes JSON
 * only, so that no form in an operator's browser can post it.
 */
export function createAdminServer(deps: {
  /** When set, everything but `/metrics` needs it as a bearer token. */
  adminToken: string | undefined
  /** The metrics in Prometheus' text format. */
  metrics: () => Promise<{ contentType: string; text: string }>
  /** The effective configuration, secrets hidden. */
  config: object
  /** Puts out of date whatever the cache holds under these tags. */
  invalidate: (tags: readonly string[]) => void
  /** Events that were given up on, and their return. */
  deadEvents: DeadEvents
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
    // Whoever reads the body takes over; unread, it would hold up the connection.
    req.resume()
    const path = req.url?.split('?', 1)[0] ?? ''
    const answer = (body: string, contentType = 'application/json') =>
      writeResponse(res, 200, ['Content-Type', contentType, 'Cache-Control', 'no-store'], body, about)
    if (path !== '/metrics') authorise(req, deps.adminToken)
    switch (path) {
      case '/metrics': {
        allow(req, 'GET, HEAD')
        const { contentType, text } = await deps.metrics()
        return answer(text, contentType)
      }
      case '/config':
        allow(req, 'GET, HEAD')
        return answer(JSON.stringify(deps.config))
      case '/cache/invalidate': {
        allow(req, 'POST')
        requireJson(req.headers)
        const { tags } = parseBody(await readBody(req, BODY_LIMIT_BYTES), invalidateSchema)
        deps.invalidate(tags)
        return answer(JSON.stringify({ invalidated: tags.length }))
      }
      case '/outbox/dead': {
        allow(req, 'GET, HEAD')
        const events = await deps.deadEvents.list(deadQuery(req.url ?? ''))
        return answer(JSON.stringify({ events, next: events.at(-1)?.sequence ?? null }))
      }
      case '/outbox/redrive': {
        allow(req, 'POST')
        requireJson(req.headers)
        const { ids } = parseBody(await readBody(req, BODY_LIMIT_BYTES), redriveSchema)
        return answer(JSON.stringify({ redriven: await deps.deadEvents.redrive(ids) }))
      }
      default:
        throw new Problem('not-found')
    }
  }
}

const invalidateSchema = z.strictObject({ tags: z.array(z.string().min(1).max(512)).min(1).max(1_000) })
const redriveSchema = z.strictObject({
  ids: z.union([z.literal('all'), z.array(z.uuid().toLowerCase()).min(1).max(1_000)]),
})
// A thousand of the longest tags, escaped.
const BODY_LIMIT_BYTES = 1_048_576

export interface DeadEvents {
  /** At most `limit`, after the sequence `after`. Throws `store-unavailable`. */
  list(page: { limit: number; after: number }): Promise<readonly { sequence: number }[]>
  /** How many are due again. Throws `store-unavailable`. */
  redrive(ids: readonly string[] | 'all'): Promise<number>
}

/** `?limit=&after=`; anything else is left alone. */
function deadQuery(url: string): { limit: number; after: number } {
  const query = new URL(url, 'http://admin').searchParams
  const number = (name: string, otherwise: number) => {
    const text = query.get(name)
    return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : otherwise
  }
  return { limit: Math.min(Math.max(number('limit', 100), 1), 1_000), after: number('after', 0) }
}

function allow(req: IncomingMessage, methods: string): void {
  if (!methods.split(', ').includes(req.method ?? '')) {
    throw new Problem('method-not-allowed', {}, { Allow: methods })
  }
}

function authorise(req: IncomingMessage, adminToken: string | undefined): void {
  if (adminToken === undefined) return
  // Digests have one length, which timingSafeEqual asks for.
  const sent = hash('sha256', req.headers.authorization ?? '', 'buffer')
  const wanted = hash('sha256', `Bearer ${adminToken}`, 'buffer')
  if (timingSafeEqual(sent, wanted)) return
  throw new Problem('unauthenticated', {}, { 'WWW-Authenticate': 'Bearer realm="punctual-admin"' })
}
