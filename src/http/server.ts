import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Gate } from '../admission/index.ts'
import { CODES, type Code, Problem } from '../errors/index.ts'
import type { LoopClock } from '../lease/index.ts'
import { randomHex, traceFrom } from '../runtime/index.ts'
import { outcomeOf } from './channels.ts'
import { attachExchange, Exchange, type ExchangeDeps } from './exchange.ts'
import { answerHealth, answerProblem, isHealthPath, type Readiness } from './health.ts'
import type { HttpOptions } from './options.ts'
import { PROBLEM_TYPE, problemBody } from './problem.ts'
import { routeOf } from './routes.ts'

/**
 * The API's listener: socket → phase → gate → lease → Express. The gate stands before Express, since refusing
 * must cost a fraction of serving; it also answers `Expect: 100-continue`, so that nobody is told to go on and
 * then refused.
 */
export function createApiServer(deps: ApiServerDeps): Server {
  const { options, gate, exchangeDeps } = deps
  /** Since when a connection that was accepted after a stall may have waited. */
  const accepted = new WeakMap<Socket, () => number | undefined>()

  function receive(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void {
    const trace = traceFrom(req.headers.traceparent as string | undefined)
    const about = { traceId: trace.traceId, closing: exchangeDeps.isDraining() }
    const invalid = invalidHead(req)
    if (invalid === undefined && isHealthPath(req.url)) return answerHealth(req, res, about, deps.readiness)

    const refusal = deps.refusal() ?? invalid
    if (refusal) return turnAway(req, res, refusal, about, expectsContinue)

    const permit = gate.enter()
    if (permit === undefined) {
      const problem = new Problem('concurrency-limit', { retryAfterMs: gate.retryAfterMs() })
      return turnAway(req, res, problem, about, expectsContinue)
    }
    if (expectsContinue) res.writeContinue()

    const chargedMs = deps.loopClock.hiddenWaitMs(accepted.get(req.socket)?.())
    if (chargedMs > 0) exchangeDeps.leaseChannels.hiddenWait.publish({ waitMs: chargedMs })
    const budgetMs = budgetOf(req, deps.requestBudgetMs)
    const exchange = new Exchange(exchangeDeps, {
      req,
      res,
      permit,
      trace,
      route: routeOf(req.url),
      budgetMs,
      chargedMs,
    })
    attachExchange(req, exchange)
    try {
      exchange.lease.enter('admission')
    } catch (error) {
      return exchange.refuse(error)
    }
    deps.routes(req, res)
  }

  /** Refuses before anything is spent. The body, if any, is read and thrown away, so that the connection lives on. */
  function turnAway(
    req: IncomingMessage,
    res: ServerResponse,
    problem: Problem,
    about: { traceId: string; closing: boolean },
    expectsContinue: boolean,
  ): void {
    req.resume()
    // After a refusal the client may send the body it announced, or not: only a new connection is unambiguous.
    answerProblem(res, problem, expectsContinue ? { ...about, closing: true } : about)
    exchangeDeps.httpChannels.ended.publish({
      method: req.method ?? '',
      route: routeOf(req.url),
      status: problem.status,
      outcome: outcomeOf(problem.status),
      durationMs: 0,
      traceId: about.traceId,
      code: problem.code,
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
  // A peer that stops reading holds its permit while the answer cannot be flushed: this long and no longer.
  server.timeout = options.requestTimeoutMs
  server.on('connection', socket => {
    const since = deps.loopClock.accepted()
    if (since) accepted.set(socket, since)
  })
  server.on('request', (req, res) => receive(req, res, false))
  server.on('checkContinue', (req, res) => receive(req, res, true))
  // Other expectations may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', (req, res) => receive(req, res, false))
  server.on('clientError', answerBrokenRequest)
  return server
}

export interface ApiServerDeps {
  readonly options: HttpOptions
  readonly requestBudgetMs: number
  readonly gate: Gate
  readonly loopClock: LoopClock
  readonly exchangeDeps: ExchangeDeps
  readonly readiness: () => Readiness
  /** Why no request is taken in this phase; undefined while they are. */
  readonly refusal: () => Problem | undefined
  readonly routes: RequestListener
}

// How often Node.js looks for requests past their time-outs; its own 30 s would make a 10 s limit a 40 s one.
const TIMEOUT_CHECK_MS = 1_000

/** What is wrong with a request's head, before it costs a permit. */
function invalidHead(req: IncomingMessage): Problem | undefined {
  if (req.headers.host === undefined && req.httpVersion === '1.1') return new Problem('malformed-request')
  const budget = req.headers['request-budget-ms']
  if (budget === undefined || (typeof budget === 'string' && /^0*[1-9]\d*$/.test(budget))) return undefined
  return new Problem('validation-failed', {
    errors: [{ pointer: '/headers/request-budget-ms', message: 'must be a positive whole number' }],
  })
}

/** `Request-Budget-Ms` may only shorten the deadline. */
function budgetOf(req: IncomingMessage, requestBudgetMs: number): number {
  const budget = req.headers['request-budget-ms']
  return budget === undefined ? requestBudgetMs : Math.min(requestBudgetMs, Number(budget))
}

/** Answers what never became a request: there is only a socket to write to, and it is closed behind the answer. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  const answered = (socket as { _httpMessage?: { headersSent: boolean } })._httpMessage?.headersSent
  if (answered || !socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const code = BROKEN[error.code ?? ''] ?? 'malformed-request'
  const traceId = randomHex(16)
  const body = problemBody(code, traceId)
  const { status } = CODES[code]
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${PROBLEM_TYPE}\r\nCache-Control: no-store\r\n` +
      `X-Trace-Id: ${traceId}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

const BROKEN: Readonly<Record<string, Code>> = {
  HPE_HEADER_OVERFLOW: 'headers-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
}
