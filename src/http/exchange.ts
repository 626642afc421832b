import type { IncomingMessage } from 'node:http'
import type { Permit } from '../admission/index.ts'
import { Problem } from '../errors/index.ts'
import { Lease, type LeaseChannels, LeaseEnd, Settlement } from '../lease/index.ts'
import type { Clock, TraceContext } from '../runtime/index.ts'
import { type HttpChannels, outcomeOf } from './channels.ts'
import type { Connection, Turn } from './connection.ts'
import type { Head } from './head.ts'
import { problemBody, problemHeaders } from './problem.ts'

/**
 * Exchange: one admitted request and its one answer. Success, refusal, budget and hang-up compete for the
 * settlement; the winner writes (or, for a hang-up, nothing is written) and the rest write nothing.
 *
 *   pending ──answer()──▶ answered      written by the route or the error handler
 *   pending ──lease expires──▶ budget   504 at once; during a commit the store's verdict answers instead
 *   pending ──response closes unanswered──▶ hangup   499, nothing written
 *
 * The permit bounds work, so it is released with the answer, or when the response closes without one: a client that
 * reads slowly keeps its connection, not a permit. When the response closes, whatever happened, the end is reported.
 */
export class Exchange {
  readonly lease: Lease
  readonly trace: TraceContext
  readonly route: string
  readonly head: Head
  readonly #turn: Turn
  readonly #connection: ExchangeConnection
  readonly #deps: ExchangeDeps
  readonly #permit: Permit | undefined
  readonly #settlement: Settlement<'answer' | 'budget' | 'hangup'>
  readonly #startedMs: number
  #status = 499
  #problem: Problem | undefined

  constructor(
    deps: ExchangeDeps,
    request: {
      turn: Turn
      connection: ExchangeConnection
      head: Head
      permit: Permit | undefined
      trace: TraceContext
      route: string
      budgetMs: number
      chargedMs: number
    },
  ) {
    this.#deps = deps
    this.#turn = request.turn
    this.#connection = request.connection
    this.#permit = request.permit
    this.head = request.head
    this.trace = request.trace
    this.route = request.route
    this.#startedMs = deps.clock.nowMs() - request.chargedMs
    this.#settlement = new Settlement(deps.leaseChannels.late)
    this.lease = new Lease(deps.clock, request.budgetMs, request.chargedMs, end => this.#onLeaseEnd(end))
    request.turn.res.on('close', () => this.#onClose())
  }

  get answered(): boolean {
    return this.#settlement.winner !== undefined
  }

  /** Writes the answer, unless another end has won. `headers` is a flat list of names and values. */
  answer(status: number, headers: readonly string[], body: string): void {
    if (this.#settlement.settle('answer')) this.#write(status, headers, body)
  }

  /** Answers whatever was thrown on the way: a problem as it is, the lease's end as 504, all else as 500. */
  refuse(error: unknown): void {
    if (error instanceof LeaseEnd && error === this.lease.ended) return this.#expire(error)
    const problem = error instanceof Problem ? error : new Problem('internal')
    if (problem !== error) this.#deps.httpChannels.fault.publish({ error, traceId: this.trace.traceId })
    if (this.#settlement.settle('answer')) this.#writeProblem(problem)
  }

  #onLeaseEnd(end: LeaseEnd): void {
    // A commit that is under way is answered by its verdict, which the store owes within settleGraceMs.
    if (end.stage !== 'commit') this.#expire(end)
  }

  /** The lease's end is no outcome of its own once somebody has answered: then it is only an echo. */
  #expire(end: LeaseEnd): void {
    if (this.answered) return
    this.#settlement.settle('budget')
    const { budgetMs } = this.lease
    this.#writeProblem(new Problem('budget-exhausted', { budgetMs, stage: end.stage, committed: 'no' }))
    // A client that closed its side and did not get what it asked for has most likely gone: only a reset tells a whole
    // hang-up from a half.
    if (this.#connection.peerClosed) this.#status = 499
  }

  #onClose(): void {
    if (this.#settlement.winner === undefined) {
      this.#settlement.settle('hangup')
      this.lease.abandon()
    }
    this.lease.close()
    this.#permit?.release()
    this.#deps.httpChannels.ended.publish({
      method: this.#turn.req.method ?? '',
      route: this.route,
      status: this.#status,
      outcome: outcomeOf(this.#status),
      durationMs: this.#deps.clock.nowMs() - this.#startedMs,
      traceId: this.trace.traceId,
      code: this.#problem?.code,
      stage: this.#problem?.extensions.stage,
      tenant: this.head.principal?.tenant,
    })
  }

  #writeProblem(problem: Problem): void {
    this.#problem = problem
    const body = problemBody(problem.code, this.trace.traceId, problem.extensions)
    this.#write(problem.status, problemHeaders(problem), body)
  }

  #write(status: number, headers: readonly string[], body: string): void {
    this.#status = status
    this.#permit?.release()
    this.#connection.answer(status, headers, body, this.trace.traceId)
  }
}

type ExchangeConnection = Pick<Connection, 'answer' | 'peerClosed'>

export interface ExchangeDeps {
  readonly clock: Clock
  readonly leaseChannels: LeaseChannels
  readonly httpChannels: HttpChannels
}

const EXCHANGE = Symbol('exchange')

interface WithExchange {
  [EXCHANGE]?: Exchange
}

/** Ties the exchange to its request, for the handlers behind Express. */
export function attachExchange(req: IncomingMessage, exchange: Exchange): void {
  ;(req as WithExchange)[EXCHANGE] = exchange
}

export function exchangeOf(req: IncomingMessage): Exchange {
  const exchange = (req as WithExchange)[EXCHANGE]
  if (exchange === undefined) throw new TypeError('a request reached Express without passing the gate')
  return exchange
}
