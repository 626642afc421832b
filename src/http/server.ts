import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Gate } from '../admission/index.ts'
import { CODES, type Code, Problem } from '../errors/index.ts'
import type { LoopClock } from '../lease/index.ts'
import { type Clock, traceFrom } from '../runtime/index.ts'
import { answerBrokenRequest } from './broken-request.ts'
import { outcomeOf } from './channels.ts'
import { Connections } from './connection.ts'
import { attachExchange, Exchange, type ExchangeDeps } from './exchange.ts'
import { answerHealth, isHealthPath, type Readiness } from './health.ts'
import type { HttpOptions } from './options.ts'
import { answerProblem } from './response.ts'
import { routeOf } from './routes.ts'

/**
 * The API's listener: socket → phase → gate → lease → Express. The gate stands before Express, since refusing
 * must cost a fraction of serving; it also answers `Expect: 100-continue`, so that nobody is told to go on and
 * then refused.
 */
export function createApiServer(deps: ApiServerDeps): Server {
  const { options, gate } = deps
  const connections = new Connections()
  const closes = (req: IncomingMessage) => deps.isDraining() && connections.close(req)
  const { responseTimeoutMs } = options
  /** Since when a connection that was accepted after a stall may have waited. */
  const accepted = new WeakMap<Socket, () => number | undefined>()

  function receive(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void {
    if (!connections.arrived(req)) return
    req.url = originForm(req.url)
    const trace = traceFrom(req.headers.traceparent as string | undefined)
    const invalid = invalidHead(req)
    if (invalid === undefined && isHealthPath(req.url)) {
      const about = { traceId: trace.traceId, closing: closes(req) }
      return answerHealth(req, res, about, deps.readiness)
    }
    const stage = deps.rehearses(req) ? deps.rehearsal : deps.stage
    const refusal = (stage === deps.stage ? deps.refusal() : undefined) ?? invalid
    if (refusal) return turnAway(req, res, refusal, trace.traceId, expectsContinue)

    const permit = gate.enter()
    if (permit === undefined) {
      const problem = new Problem('concurrency-limit', { retryAfterMs: gate.retryAfterMs() })
      return turnAway(req, res, problem, trace.traceId, expectsContinue)
    }
    const chargedMs = deps.loopClock.hiddenWaitMs(accepted.get(req.socket)?.())
    const { clock } = deps
    const { routes, leaseChannels, httpChannels } = stage
    if (chargedMs > 0) leaseChannels.hiddenWait.publish({ waitMs: chargedMs })
    const budgetMs = budgetOf(req, deps.requestBudgetMs)
    const exchange = new Exchange(
      { clock, leaseChannels, httpChannels, responseTimeoutMs, closes },
      {
        req,
        res,
        permit,
        trace,
        route: routeOf(req.url),
        budgetMs,
        chargedMs,
      },
    )
    attachExchange(req, exchange)
    try {
      exchange.lease.enter('admission')
    } catch (error) {
      return exchange.refuse(error)
    }
    if (expectsContinue) res.writeContinue()
    routes(req, res)
  }

  /** Refuses before anything is spent. The body, if any, is read and thrown away, so that the connection lives on. */
  function turnAway(
    req: IncomingMessage,
    res: ServerResponse,
    problem: Problem,
    traceId: string,
    expectsContinue: boolean,
  ): void {
    req.resume()
    // After a refusal the client may send the body it announced, or not: only a new connection is unambiguous.
    const closing = expectsContinue ? connections.close(req) : closes(req)
    answerProblem(res, problem, { traceId, closing })
    reportTurnedAway(req.method ?? '', routeOf(req.url), problem.code, traceId)
  }

  /** The end of a request that never had an exchange. */
  function reportTurnedAway(method: string, route: string, code: Code, traceId: string): void {
    const { status } = CODES[code]
    deps.stage.httpChannels.ended.publish({
      method,
      route,
      status,
      outcome: outcomeOf(status),
      durationMs: undefined,
      traceId,
      code,
      stage: undefined,
      tenant: undefined,
    })
  }

  const server = createServer({
    keepAliveTimeout: options.keepAliveTimeoutMs,
    headersTimeout: options.headersTimeoutMs,
    requestTimeout: options.requestTimeoutMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    requireHostHeader: false,
  })
  // Of a connection on which nothing moves. Answers that do not leave have a limit of their own.
  server.timeout = options.requestTimeoutMs
  server.on('connection', socket => {
    const since = deps.loopClock.accepted()
    if (since) accepted.set(socket, since)
  })
  server.on('request', (req, res) => receive(req, res, false))
  server.on('checkContinue', (req, res) => receive(req, res, true))
  // Other expectations may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', (req, res) => receive(req, res, false))
  const refuseBytes = (error: NodeJS.ErrnoException, socket: Duplex) =>
    answerBrokenRequest(error, socket, (code, traceId) => reportTurnedAway('', 'unmatched', code, traceId))
  server.on('clientError', refuseBytes)
  // Nothing is tunnelled; unheard, Node.js would close the connection under the answers that it still owes.
  server.on('connect', (_req, socket) => refuseBytes(new Error('CONNECT'), socket))
  return server
}

export interface ApiServerDeps {
  readonly options: HttpOptions
  readonly requestBudgetMs: number
  readonly gate: Gate
  readonly loopClock: LoopClock
  readonly clock: Clock
  readonly stage: Stage
  /** While draining, connections are told to close as soon as all they asked for is answered. */
  readonly isDraining: () => boolean
  readonly readiness: () => Readiness
  /** Why no request is taken in this phase; undefined while they are. */
  readonly refusal: () => Problem | undefined
  /** Whether a request is one of our own, which is taken in spite of the phase; it goes to `rehearsal`. */
  readonly rehearses: (req: IncomingMessage) => boolean
  readonly rehearsal: Stage
}

/** Where a request is carried out, and who hears of it. */
export interface Stage extends Pick<ExchangeDeps, 'leaseChannels' | 'httpChannels'> {
  readonly routes: RequestListener
}

// How often Node.js looks for requests past their time-outs; its own 30 s would make a 10 s limit a 40 s one.
const TIMEOUT_CHECK_MS = 1_000

/** The target as path and query: a server must also take it in absolute form (RFC 9112, section 3.2.2). */
function originForm(target = '/'): string {
  if (target.startsWith('/')) return target
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '')
  return path.startsWith('/') || path === target ? path : `/${path}`
}

/** What is wrong with a request's head, before it costs a permit. */
function invalidHead(req: IncomingMessage): Problem | undefined {
  if (isAmbiguous(req)) return new Problem('malformed-request')
  const budget = req.headers['request-budget-ms']
  if (budget === undefined || (typeof budget === 'string' && /^0*[1-9]\d*$/.test(budget))) return undefined
  return new Problem('validation-failed', {
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
function budgetOf(req: IncomingMessage, requestBudgetMs: number): number {
  const budget = req.headers['request-budget-ms']
  return budget === undefined ? requestBudgetMs : Math.min(requestBudgetMs, Number(budget))
}
