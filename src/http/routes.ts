import express, { type ErrorRequestHandler, type Express, type Request, type Response } from 'express'
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
import { type Exchange, exchangeOf } from './exchange.ts'
import { hasBody, parseBody, requireJson } from './json-body.ts'
import { listQuery } from './list-query.ts'
import type { HttpOptions } from './options.ts'
import { problemPage } from './problem-pages.ts'
import { readBody } from './read-body.ts'

/** The routes behind the gate. The head of a request is judged before; each handler is thin: parse, one verb, one answer. */
export function createRoutes(deps: { services: OrderServices; options: HttpOptions }): Express {
  const { services } = deps
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('query parser', false)
  app.enable('case sensitive routing')
  app.enable('strict routing')

  app
    .route('/v1/orders')
    .post(async (req, _res) => {
      const exchange = exchangeOf(req)
      exchange.lease.enter('body')
      const body = await readBody(req, deps.options.bodyLimitBytes)
      if (exchange.answered) return
      const request = parseBody(body, orderRequestSchema)
      const placed = await placeOrder(contextOf(services, exchange), { key: keyOf(exchange), request })
      answerWritten(exchange, placed, ['Location', placed.location])
    })
    .get(async (req, _res) => {
      const exchange = exchangeOf(req)
      const query = listQuery(req.url)
      answerRead(req, await listOrders(contextOf(services, exchange), query))
    })

  app.get('/v1/orders/:id', async (req, _res) => {
    const exchange = exchangeOf(req)
    answerRead(req, await getOrder(contextOf(services, exchange), { id: req.params.id ?? '' }))
  })

  app.post('/v1/orders/:id/cancel', async (req, _res) => {
    const exchange = exchangeOf(req)
    if (hasBody(req.headers)) {
      exchange.lease.enter('body')
      const body = await readBody(req, deps.options.bodyLimitBytes)
      if (exchange.answered) return
      if (body.length > 0) {
        requireJson(req.headers)
        parseBody(body, NOTHING)
      }
    }
    const input = { key: keyOf(exchange), id: req.params.id ?? '' }
    answerWritten(exchange, await cancelOrder(contextOf(services, exchange), input))
  })

  app.get('/problems/:code', (req, _res) => {
    const code = req.params.code ?? ''
    if (!Object.hasOwn(CODES, code)) throw new Problem('not-found')
    exchangeOf(req).answer(200, ['Content-Type', 'application/json'], problemPage(code as Code))
  })

  app.use(() => {
    throw new Problem('not-found')
  })
  app.use(refuse)
  return app
}

// An answer holds a customer's data: a shared cache must not keep it, a private one must ask before using it.
const ORDER_HEADERS = ['Content-Type', 'application/json', 'Cache-Control', 'private, no-cache']

const NOTHING = z.strictObject({})

function contextOf(services: OrderServices, exchange: Exchange): OrderContext {
  const { lease, trace } = exchange
  const { principal } = exchange.head
  if (principal === undefined) throw new TypeError('an order route was reached without a principal')
  return {
    services,
    lease,
    tenant: principal.tenant,
    view: principal.view,
    traceparent: trace.traceparent,
  }
}

function keyOf({ head }: Exchange): string {
  if (head.idempotencyKey === undefined) throw new TypeError('a write was reached without an idempotency key')
  return head.idempotencyKey
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
