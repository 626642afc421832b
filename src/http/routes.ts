import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'
import { z } from 'zod'
import { orderRequestSchema } from '../domain/index.ts'
import { CODES, type Code, Problem } from '../errors/index.ts'
import {
  cancelOrder,
  getOrder,
  listOrders,
  type OrderContext,
  type OrderReply,
  type OrderServices,
  placeOrder,
  type WrittenOrder,
} from '../orders/index.ts'
import type { ApiKeys } from './auth.ts'
import { type Exchange, exchangeOf } from './exchange.ts'
import { idempotencyKey } from './idempotency-key.ts'
import { hasBody, parseBody, requireJson } from './json-body.ts'
import { listQuery } from './list-query.ts'
import type { HttpOptions, Scope } from './options.ts'
import { problemPage } from './problem-pages.ts'
import { readBody } from './read-body.ts'

/** The routes behind the gate. Each handler is thin: authorise, parse, one verb, one answer. */
export function createRoutes(deps: {
  services: OrderServices
  apiKeys: ApiKeys
  options: HttpOptions
}): Express {
  const { services, apiKeys } = deps
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('query parser', false)
  app.enable('case sensitive routing')
  app.enable('strict routing')

  const authorise =
    (scope: Scope): RequestHandler =>
    (req, _res, next) => {
      exchangeOf(req).principal = apiKeys.authorise(req.headers.authorization, scope)
      next()
    }

  app
    .route('/v1/orders')
    .post(authorise('orders:write'), async (req, _res) => {
      const exchange = exchangeOf(req)
      const key = idempotencyKey(req)
      requireJson(req.headers)
      exchange.lease.enter('body')
      const body = await readBody(req, deps.options.bodyLimitBytes)
      if (exchange.answered) return
      const request = parseBody(body, orderRequestSchema)
      const placed = await placeOrder(contextOf(services, exchange), { key, request })
      answerWritten(exchange, placed, ['Location', placed.location])
    })
    .get(authorise('orders:read'), async (req, _res) => {
      const exchange = exchangeOf(req)
      const query = listQuery(req.url)
      answerRead(req, await listOrders(contextOf(services, exchange), query))
    })
    .all(allow('GET, HEAD, POST'))

  app
    .route('/v1/orders/:id')
    .get(authorise('orders:read'), async (req, _res) => {
      const exchange = exchangeOf(req)
      answerRead(req, await getOrder(contextOf(services, exchange), { id: req.params.id ?? '' }))
    })
    .all(allow('GET, HEAD'))

  app
    .route('/v1/orders/:id/cancel')
    .post(authorise('orders:write'), async (req, _res) => {
      const exchange = exchangeOf(req)
      const key = idempotencyKey(req)
      // None is needed; one in chunks may turn out to be none.
      if (hasBody(req.headers)) {
        if (req.headers['transfer-encoding'] === undefined) requireJson(req.headers)
        exchange.lease.enter('body')
        const body = await readBody(req, deps.options.bodyLimitBytes)
        if (exchange.answered) return
        if (body.length > 0) {
          requireJson(req.headers)
          parseBody(body, NOTHING)
        }
      }
      const id = req.params.id ?? ''
      answerWritten(exchange, await cancelOrder(contextOf(services, exchange), { key, id }))
    })
    .all(allow('POST'))

  app
    .route('/problems/:code')
    .get((req, _res) => {
      const code = req.params.code ?? ''
      if (!Object.hasOwn(CODES, code)) throw new Problem('not-found')
      exchangeOf(req).answer(200, ['Content-Type', 'application/json'], problemPage(code as Code))
    })
    .all(allow('GET, HEAD'))

  app.use(() => {
    throw new Problem('not-found')
  })
  app.use(refuse)
  return app
}

/** The template of a path, as metrics name it. */
export function routeOf(url: string | undefined): string {
  const path = url?.split('?', 1)[0] ?? ''
  if (path === '/v1/orders') return path
  if (ORDER_PATH.test(path)) return '/v1/orders/{id}'
  if (CANCEL_PATH.test(path)) return '/v1/orders/{id}/cancel'
  if (PROBLEM_PATH.test(path)) return '/problems/{code}'
  return 'unmatched'
}

const ORDER_PATH = /^\/v1\/orders\/[^/]+$/
const CANCEL_PATH = /^\/v1\/orders\/[^/]+\/cancel$/
const PROBLEM_PATH = /^\/problems\/[^/]+$/
// An answer holds a customer's data: a shared cache must not keep it, a private one must ask before using it.
const ORDER_HEADERS = ['Content-Type', 'application/json', 'Cache-Control', 'private, no-cache']

const NOTHING = z.strictObject({})

function contextOf(services: OrderServices, exchange: Exchange): OrderContext {
  const { principal, lease, trace } = exchange
  if (principal === undefined) throw new TypeError('an order route was reached without a principal')
  return {
    services,
    lease,
    tenant: principal.tenant,
    view: principal.view,
    traceparent: trace.traceparent,
  }
}

function answerRead(req: Request, { json, etag }: OrderReply): void {
  const unchanged = matches(req.headers['if-none-match'], etag)
  exchangeOf(req).answer(unchanged ? 304 : 200, [...ORDER_HEADERS, 'ETag', etag], json)
}

function answerWritten(exchange: Exchange, order: WrittenOrder, more: readonly string[] = []): void {
  const headers = [...ORDER_HEADERS, ...more, 'ETag', order.etag]
  if (order.replayed) headers.push('Idempotent-Replayed', 'true')
  exchange.answer(order.status, headers, order.json)
}

function allow(methods: string): RequestHandler {
  return () => {
    throw new Problem('method-not-allowed', {}, { Allow: methods })
  }
}

/** `If-None-Match` uses weak comparison (RFC 9110, section 13.1.2). */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some(candidate => {
    const tag = candidate.trim()
    return tag === '*' || tag === etag || tag === `W/${etag}`
  })
}

const refuse: ErrorRequestHandler = (error: unknown, req: Request, _res: Response, _next) => {
  exchangeOf(req).refuse(asProblem(error) ?? error)
}

/** What Express itself throws, in the words of our table: only an address that it cannot decode. */
function asProblem(error: unknown): Problem | undefined {
  if (!(error instanceof URIError)) return undefined
  return new Problem('validation-failed', { errors: [{ pointer: '/path', message: 'not a valid address' }] })
}
