import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Gate } from '../admission/index.ts'
import { Problem } from '../errors/index.ts'
import type { LoopClock } from '../lease/index.ts'
import { type Clock, type TraceContext, traceFrom } from '../runtime/index.ts'
import type { ApiKeys } from './auth.ts'
import { answerBrokenRequest } from './broken-request.ts'
import { outcomeOf } from './channels.ts'
import { Connection, type Turn } from './connection.ts'
import { attachExchange, Exchange, type ExchangeDeps } from './exchange.ts'
import { budgetOf, type Head, readHead, requireSoundHead, routeOf } from './head.ts'
import { healthAnswer, isHealthPath, type Readiness } from './health.ts'
import type { HttpOptions } from './options.ts'
import { problemBody, problemHeaders } from './problem.ts'
import { withoutUpgrade } from './upgrade.ts'

/**
 * The API's listener: socket → connection → phase → head → gate → lease → Express. All that the head of a request
 * decides stands before the gate, and the gate before Express, since refusing must cost a fraction of serving. A client
 * that expects `100 Continue` is told to go on behind both.
 */
export function createApiServer(deps: ApiServerDeps): ApiServer {
  const { options, gate, clock } = deps
  const connections = new Map<Socket, Connection>()
  const idleListeners = new Set<() => void>()
  /** Since when a connection that was accepted after a stall may have waited. */
  const accepted = new WeakMap<Socket, () => number | undefined>()

  function begin(turn: Turn, connection: Connection): void {
    const { req } = turn
    req.url = originForm(req.url)
    const trace = traceFrom(req.headers.traceparent as string | undefined)
    const stage = deps.rehearses(req) ? deps.rehearsal : deps.stage
    let isHealth = false
    try {
      if (turn.broken) throw turn.broken
      requireSoundHead(req)
      isHealth = isHealthPath(req.url)
      if (isHealth) {
        const { status, headers, body } = healthAnswer(req, deps.readiness)
        return connection.answer(status, headers, body, trace.traceId)
      }
      const refusal = stage === deps.stage ? deps.refusal() : undefined
      if (refusal) throw refusal
      admit(turn, connection, stage, trace, readHead(req, { apiKeys: stage.apiKeys, ...options }))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const body = problemBody(error.code, trace.traceId, error.extensions)
      connection.answer(error.status, problemHeaders(error), body, trace.traceId)
      if (!isHealth) reportTurnedAway(stage, req, error, trace.traceId)
    }
  }

  /** Throws `concurrency-limit`. What everybody may read needs no permit. */
  function admit(turn: Turn, connection: Connection, stage: Stage, trace: TraceContext, head: Head): void {
    const { req, res } = turn
    const permit = head.principal === undefined ? undefined : gate.enter()
    if (permit === undefined && head.principal !== undefined) {
      throw new Problem('concurrency-limit', { retryAfterMs: gate.retryAfterMs() })
    }
    const chargedMs = deps.loopClock.hiddenWaitMs(accepted.get(req.socket)?.())
    const { routes, leaseChannels, httpChannels } = stage
    if (chargedMs > 0) leaseChannels.hiddenWait.publish({ waitMs: chargedMs })
    const budgetMs = budgetOf(req, deps.requestBudgetMs)
    const route = routeOf(req.url)
    const exchange = new Exchange(
      { clock, leaseChannels, httpChannels },
      { turn, connection, head, permit, trace, route, budgetMs, chargedMs },
    )
    attachExchange(req, exchange)
    try {
      exchange.lease.enter('admission')
    } catch (error) {
      return exchange.refuse(error)
    }
    if (turn.expectsContinue) {
      turn.expectsContinue = false
      res.writeContinue()
    }
    routes(req, res)
  }

  /** The end of a request that never had an exchange; without a problem the client has hung up. */
  function reportTurnedAway(
    { httpChannels }: Stage,
    req: IncomingMessage | undefined,
    problem: Problem | undefined,
    traceId: string,
  ): void {
    const status = problem?.status ?? 499
    httpChannels.ended.publish({
      method: req?.method ?? '',
      route: routeOf(req?.url),
      status,
      outcome: outcomeOf(status),
      durationMs: undefined,
      traceId,
      code: problem?.code,
      stage: undefined,
      tenant: undefined,
    })
  }

  function connectionOf(socket: Socket): Connection {
    const known = connections.get(socket)
    if (known) return known
    const connection = new Connection(socket, {
      clock,
      responseTimeoutMs: options.responseTimeoutMs,
      isDraining: deps.isDraining,
      begin,
      abandoned: ({ req }) => reportTurnedAway(deps.stage, req, undefined, traceFrom(undefined).traceId),
      ended: () => {
        for (const listener of idleListeners) listener()
      },
    })
    connections.set(socket, connection)
    socket.on('close', () => connections.delete(socket))
    return connection
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
  // A client that has sent its whole request may close its side and still be owed the answer (RFC 9112, section 9.6).
  Object.assign(server, { httpAllowHalfOpen: true })
  const arrive =
    (expectsContinue: boolean): RequestListener =>
    (req, res) =>
      connectionOf(req.socket).arrive({ req, res, expectsContinue, broken: undefined })
  const refuseBytes = (error: NodeJS.ErrnoException, socket: Socket) =>
    answerBrokenRequest(error, { socket, connection: connectionOf(socket) }, (problem, traceId) =>
      reportTurnedAway(deps.stage, undefined, problem, traceId),
    )
  server.on('connection', socket => {
    connectionOf(socket)
    const since = deps.loopClock.accepted()
    if (since) accepted.set(socket, since)
  })
  server.on('request', arrive(false))
  server.on('checkContinue', arrive(true))
  // Other expectations may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', arrive(false))
  server.on('clientError', (error, socket) => refuseBytes(error, socket as Socket))
  // Nothing is tunnelled; unheard, Node.js would close the connection under the answers that it still owes.
  server.on('connect', (_req, socket) => refuseBytes(new Error('CONNECT'), socket as Socket))
  server.on('upgrade', (req: IncomingMessage, duplex, behind: Buffer) => {
    const socket = duplex as Socket
    connectionOf(socket).afterAnswers(() => {
      socket.unshift(withoutUpgrade(req, behind))
      server.emit('connection', socket)
    })
  })
  return {
    server,
    inProgress: () => {
      let requests = 0
      for (const connection of connections.values()) requests += connection.inProgress
      return requests
    },
    onEnded: listener => {
      idleListeners.add(listener)
      return () => idleListeners.delete(listener)
    },
  }
}

export interface ApiServer {
  readonly server: Server
  /** How many requests have arrived and are not over, the writing of their answers included. */
  inProgress(): number
  /** Calls back after each request that is over, until the returned function is called. */
  onEnded(listener: () => void): () => void
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
  readonly apiKeys: ApiKeys
}

// How often Node.js looks for requests past their time-outs; its own 30 s would make a 10 s limit a 40 s one.
const TIMEOUT_CHECK_MS = 1_000

/** The target as path and query: a server must also take it in absolute form (RFC 9112, section 3.2.2). */
function originForm(target = '/'): string {
  if (target.startsWith('/')) return target
  const path = target.replace(/^https?:\/\/[^/?#]*/i, '')
  return path.startsWith('/') || path === target ? path : `/${path}`
}
