import type { IncomingMessage } from 'node:http'
import { Problem } from '../errors/index.ts'
import type { ApiKeys, Principal } from './auth.ts'
import { idempotencyKey } from './idempotency-key.ts'
import { hasBody, requireJson } from './json-body.ts'
import type { Scope } from './options.ts'

/**
 * What the head of a request decides alone. It is decided before a permit is taken, and before a client that expects
 * `100 Continue` is told to send its body; the cheapest checks come first.
 */
export interface Head {
  /** Who asks; undefined on a public route, which holds no permit either. */
  readonly principal: Principal | undefined
  /** Of a write. */
  readonly idempotencyKey: string | undefined
}

/**
 * Throws `not-found`, `method-not-allowed`, `unauthenticated`, `forbidden`, `idempotency-key-missing`,
 * `idempotency-key-invalid`, `malformed-json`, `unsupported-media-type` or `payload-too-large`.
 */
export function readHead(req: IncomingMessage, deps: { apiKeys: ApiKeys; bodyLimitBytes: number }): Head {
  const route = findRoute(req.url)
  if (route === undefined) throw new Problem('not-found')
  const method = req.method === 'HEAD' ? 'GET' : (req.method ?? '')
  if (!Object.hasOwn(route.methods, method)) {
    throw new Problem('method-not-allowed', {}, { Allow: allowedBy(route) })
  }
  const scope = route.methods[method]
  if (scope === undefined) return { principal: undefined, idempotencyKey: undefined }
  const principal = deps.apiKeys.authorise(req.headers.authorization, scope)
  if (method === 'GET') return { principal, idempotencyKey: undefined }

  const key = idempotencyKey(req)
  // Where no body is needed, one in chunks may turn out to be none.
  const mayBeEmpty = !hasBody(req.headers) || req.headers['transfer-encoding'] !== undefined
  if (route.needsBody || !mayBeEmpty) requireJson(req.headers)
  if (Number(req.headers['content-length'] ?? 0) > deps.bodyLimitBytes) throw new Problem('payload-too-large')
  return { principal, idempotencyKey: key }
}

/** What every request must keep to, one of the health paths too. Throws `malformed-request` or `validation-failed`. */
export function requireSoundHead(req: IncomingMessage): void {
  if (isAmbiguous(req)) throw new Problem('malformed-request')
  const budget = req.headers['request-budget-ms']
  if (budget === undefined || (typeof budget === 'string' && /^0*[1-9]\d*$/.test(budget))) return
  throw new Problem('validation-failed', {
    errors: [{ pointer: '/headers/request-budget-ms', message: 'must be a positive whole number' }],
  })
}

/**
 * A head that two readers could take for two requests: no Host or several (RFC 9112, section 3.2), several
 * Authorization of which Node.js would keep the first, a transfer coding that Node.js does not decode.
 */
function isAmbiguous({ headers, rawHeaders, httpVersion }: IncomingMessage): boolean {
  if (headers.host === undefined && httpVersion === '1.1') return true
  if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') return true
  let hosts = 0
  let credentials = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    if (name.length === 13 && name.toLowerCase() === 'authorization') credentials++
  }
  return hosts > 1 || credentials > 1
}

/** `Request-Budget-Ms` may only shorten the deadline. */
export function budgetOf(req: IncomingMessage, requestBudgetMs: number): number {
  const budget = req.headers['request-budget-ms']
  return budget === undefined ? requestBudgetMs : Math.min(requestBudgetMs, Number(budget))
}

/** The template of a path, as metrics name it. */
export function routeOf(url: string | undefined): string {
  return findRoute(url)?.template ?? 'unmatched'
}

interface Route {
  readonly template: string
  readonly path: RegExp
  /** The scope that each method needs; undefined for what everybody may read. HEAD follows GET. */
  readonly methods: Readonly<Record<string, Scope | undefined>>
  readonly needsBody?: boolean
}

const ROUTES: readonly Route[] = [
  {
    template: '/v1/orders',
    path: /^\/v1\/orders$/,
    methods: { GET: 'orders:read', POST: 'orders:write' },
    needsBody: true,
  },
  { template: '/v1/orders/{id}', path: /^\/v1\/orders\/[^/]+$/, methods: { GET: 'orders:read' } },
  {
    template: '/v1/orders/{id}/cancel',
    path: /^\/v1\/orders\/[^/]+\/cancel$/,
    methods: { POST: 'orders:write' },
  },
  { template: '/problems/{code}', path: /^\/problems\/[^/]+$/, methods: { GET: undefined } },
]

function findRoute(url = ''): Route | undefined {
  const path = url.split('?', 1)[0] ?? ''
  return ROUTES.find(route => route.path.test(path))
}

function allowedBy({ methods }: Route): string {
  return Object.keys(methods)
    .flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')
}
