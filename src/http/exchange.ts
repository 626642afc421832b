import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Permit } from '../admission/index.ts'
import { Problem } from '../errors/index.ts'
import { Lease, type LeaseChannels, LeaseEnd, Settlement } from '../lease/index.ts'
import type { Clock, Timer, TraceContext } from '../runtime/index.ts'
import type { Principal } from './auth.ts'
import { type HttpChannels, outcomeOf } from './channels.ts'
import { problemBody, problemHeaders } from './problem.ts'
import { writeResponse } from './response.ts'

/**
 * Exchange: one admitted request and its one answer. Success, refusal, budget and hang-up compete for the
 * settlement; the winner writes (or, for a hang-up, nothing is written) and the rest write nothing.
 *
 *   pending ──answer()──▶ answered      written by the route or the error handler
 *   pending ──lease expires──▶ budget   504 at once; during a commit the store's verdict answers instead
 *   pending ──response closes unanswered──▶ hangup   499, nothing written
 *
 * When the response closes, whatever happened, the permit is released, the lease closed and the end reported. It closes
 * once its last byte has left, or when that takes longer than `responseTimeoutMs`.
 */
export class Exchange {
  readonly lease: Lease
  readonly trace: TraceContext
  readonly route: string
  principal: Principal | undefined
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #deps: ExchangeDeps
  readonly #permit: Permit
  readonly #settlement: Settlement<'answer' | 'budget' | 'hangup'>
  readonly #startedMs: number
  #status = 499
  #flushTimer: Timer | undefined
  #problem: Problem | undefined

  constructor(
    deps: ExchangeDeps,
    request: {
      req: IncomingMessage
      res: ServerResponse
      permit: Permit
      trace: TraceContext
      route: string
      budgetMs: number
      chargedMs: number
    },
  ) {
    this.#deps = deps
    this.#req = request.req
    this.#res = request.res
    this.#permit = request.permit
    this.trace = request.trace
    this.route = request.route
    this.#startedMs = deps.clock.nowMs() - request.chargedMs
    this.#settlement = new Settlement(deps.leaseChannels.late)
    this.lease = new Lease(deps.clock, request.budgetMs, request.chargedMs, end => this.#onLeaseEnd(end))
    request.res.on('close', () => this.#onClose())
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
  }

  #onClose(): void {
    if (this.#settlement.winner === undefined) {
      this.#settlement.settle('hangup')
      this.lease.abandon()
    }
    this.lease.close()
    if (this.#flushTimer !== undefined) this.#deps.clock.clearTimer(this.#flushTimer)
    this.#permit.release()
    this.#deps.httpChannels.ended.publish({
      method: this.#req.method ?? '',
      route: this.route,
      status: this.#status,
      outcome: outcomeOf(this.#status),
      durationMs: this.#deps.clock.nowMs() - this.#startedMs,
      traceId: this.trace.traceId,
      code: this.#problem?.code,
      stage: this.#problem?.extensions.stage,
      tenant: this.principal?.tenant,
    })
  }

  #writeProblem(problem: Problem): void {
    this.#problem = problem
    const body = problemBody(problem.code, this.trace.traceId, problem.extensions)
    this.#write(problem.status, problemHeaders(problem), body)
  }

  #write(status: number, headers: readonly string[], body: string): void {
    this.#status = status
    writeResponse(this.#res, status, headers, body, {
      traceId: this.trace.traceId,
      closing: this.#deps.closes(this.#req),
    })
    this.#boundFlush()
  }

  /** A client that reads slowly, or not at all, must not keep a permit; nor one that asked for more than it reads. */
  #boundFlush(): void {
    const { socket } = this.#res
    if (socket !== null && socket.writableLength === 0) return
    const { clock, responseTimeoutMs } = this.#deps
    this.#flushTimer = clock.setTimer(() => this.#req.socket.destroy(), responseTimeoutMs)
  }
}

export interface ExchangeDeps {
  readonly clock: Clock
  readonly leaseChannels: LeaseChannels
  readonly httpChannels: HttpChannels
  /** How long an answer may take to leave. */
  readonly responseTimeoutMs: number
  /** Whether the answer to this request tells its connection to close. */
  readonly closes: (req: IncomingMessage) => boolean
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
