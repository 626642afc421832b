import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Problem } from '../errors/index.ts'
import type { Clock, Timer } from '../runtime/index.ts'
import { writeResponse } from './response.ts'

/**
 * Connection: the requests of one socket, one at a time and each with one answer. A pipelined request begins when the
 * kernel has taken the whole answer before it, so a client that does not read its answers holds one permit at most.
 *
 *   idle ──arrive()──▶ busy ──answer taken by the kernel──▶ idle, or busy with the next request
 *   any ──an answer says `Connection: close`──▶ closing        later requests are ignored (RFC 9112, section 9.6)
 *   closing ──answer taken by the kernel──▶ half closed (FIN) ──the client's FIN, or LINGER_MS──▶ destroyed
 *
 * A refused body is read away up to `READ_AWAY_BYTES` and `READ_AWAY_MS`; a longer one closes the connection. The close
 * has two stages, because a socket that is destroyed with unread bytes is reset, and the reset can overtake the answer.
 */
export class Connection {
  readonly #socket: Socket
  readonly #deps: ConnectionDeps
  readonly #queue: Turn[] = []
  #current: Turn | undefined
  #closing = false
  /** What happens once every request that has arrived is answered. */
  #whenIdle: (() => void) | undefined
  /** `socket.bytesRead` when the server began to throw bytes away. */
  #readAwayFromBytes: number | undefined
  #flushTimer: Timer | undefined
  #bodyTimer: Timer | undefined
  #lingerTimer: Timer | undefined
  #probeTimer: Timer | undefined

  constructor(socket: Socket, deps: ConnectionDeps) {
    this.#socket = socket
    this.#deps = deps
    // Node.js closes a connection by this method once it has written the last answer.
    socket.destroySoon = () => this.#closeInStages()
    // Node.js resumes the socket whenever somebody reads a body.
    socket.on('resume', () => {
      if (this.#holdsReading) socket.pause()
    })
    socket.on('end', () => this.#probe())
    socket.on('close', () => this.#onClose())
    // Unheard, a reset after CONNECT, where Node.js takes its own listener away, would end the process.
    socket.on('error', () => undefined)
  }

  /** How many requests have arrived and are not over. */
  get inProgress(): number {
    return this.#queue.length + (this.#current === undefined ? 0 : 1)
  }

  /** True once the client has sent FIN: it has closed its whole connection, or will still read the answer. */
  get peerClosed(): boolean {
    return this.#socket.readableEnded
  }

  arrive(turn: Turn): void {
    if (this.#closing) return this.#limitReadAway()
    if (this.#current === undefined) return this.#begin(turn)
    this.#queue.push(turn)
    this.#socket.pause()
  }

  /** Writes the answer to the request that is in progress. `headers` is a flat list of names and values. */
  answer(status: number, headers: readonly string[], body: string, traceId: string): void {
    const turn = this.#current
    if (turn === undefined) throw new TypeError('an answer was written where no request is in progress')
    const { req, res } = turn
    const closing = this.#mustClose(turn)
    this.#closing ||= closing || !res.shouldKeepAlive
    writeResponse(res, status, headers, body, { traceId, closing })
    if (!req.complete) this.#readAway(req)
    if (this.#socket.writableLength === 0) return
    const { clock, responseTimeoutMs } = this.#deps
    this.#flushTimer = clock.setTimer(() => this.#socket.destroy(), responseTimeoutMs)
  }

  /** Carries `action` out when every request that has arrived is answered, instead of any further request. */
  afterAnswers(action: () => void): void {
    if (this.#closing || this.#whenIdle !== undefined) return
    if (this.#current === undefined) return action()
    this.#whenIdle = action
    this.#socket.pause()
  }

  /** The newest request, while its body has not arrived whole. */
  get unfinished(): Turn | undefined {
    const newest = this.#queue.at(-1) ?? this.#current
    return newest?.req.complete ? undefined : newest
  }

  isInProgress(turn: Turn): boolean {
    return this.#current === turn
  }

  /** Writes `bytes` as the last ones of this connection. */
  end(bytes: string): void {
    this.#closing = true
    this.#socket.write(bytes)
    this.#closeInStages()
  }

  /** Reads nothing more, and closes behind what is written. */
  stopReading(): void {
    this.#readAwayFromBytes = Number.NEGATIVE_INFINITY
    this.#limitReadAway()
  }

  #begin(turn: Turn): void {
    this.#current = turn
    this.#deps.begin(turn, this)
    // Behind the listeners that end the request, so that it is over before the next one begins.
    turn.res.on('close', () => this.#next())
  }

  #next(): void {
    this.#clear(this.#flushTimer)
    this.#flushTimer = undefined
    this.#current = undefined
    this.#deps.ended()
    const next = this.#socket.destroyed ? undefined : this.#queue.shift()
    const action = next === undefined ? this.#whenIdle : undefined
    if (action) this.#whenIdle = undefined
    if (!this.#holdsReading) this.#socket.resume()
    action?.()
    if (next) this.#begin(next)
  }

  get #holdsReading(): boolean {
    return this.#queue.length > 0 || this.#whenIdle !== undefined || this.#readAwayBytes > READ_AWAY_BYTES
  }

  #mustClose({ req, expectsContinue, broken }: Turn): boolean {
    // A request that waits behind this one would be carried out and never answered.
    if (this.#queue.length > 0) return false
    if (this.#deps.isDraining() || this.peerClosed) return true
    if (req.complete) return false
    // A client that was not told to go on may send its body or leave it: only a new connection is unambiguous.
    return (
      expectsContinue || broken !== undefined || Number(req.headers['content-length'] ?? 0) > READ_AWAY_BYTES
    )
  }

  #readAway(req: IncomingMessage): void {
    this.#readAwayFromBytes ??= this.#socket.bytesRead
    this.#bodyTimer = this.#deps.clock.setTimer(() => this.#closeInStages(), READ_AWAY_MS)
    req.on('data', () => this.#limitReadAway())
    req.on('end', () => {
      this.#clear(this.#bodyTimer)
      if (!this.#closing) this.#readAwayFromBytes = undefined
    })
  }

  get #readAwayBytes(): number {
    return this.#readAwayFromBytes === undefined ? 0 : this.#socket.bytesRead - this.#readAwayFromBytes
  }

  #limitReadAway(): void {
    if (this.#readAwayBytes <= READ_AWAY_BYTES) return
    this.#socket.pause()
    this.#closeInStages()
  }

  #closeInStages(): void {
    if (this.#lingerTimer !== undefined) return
    this.#closing = true
    this.#readAwayFromBytes ??= this.#socket.bytesRead
    this.#socket.end()
    this.#lingerTimer = this.#deps.clock.setTimer(() => this.#socket.destroy(), LINGER_MS)
  }

  /**
   * A FIN says that the client will send no more, and not whether it still reads. An interim answer, which every client
   * of HTTP/1.1 must put up with (RFC 9110, section 15.2), is lost on one that reads, and brings a reset from one that
   * has gone; the write after it fails, and the request ends as a hang-up.
   */
  #probe(): void {
    const turn = this.#current
    if (turn === undefined || turn.req.httpVersion !== '1.1') return
    this.#probeTimer = this.#deps.clock.setTimer(() => {
      if (this.#current?.res.headersSent !== false) return
      this.#current.res.writeProcessing()
      this.#probe()
    }, PROBE_MS)
  }

  #onClose(): void {
    this.#clear(this.#probeTimer)
    this.#clear(this.#flushTimer)
    this.#clear(this.#bodyTimer)
    this.#clear(this.#lingerTimer)
    for (const turn of this.#queue.splice(0)) this.#deps.abandoned(turn)
    this.#deps.ended()
  }

  #clear(timer: Timer | undefined): void {
    if (timer !== undefined) this.#deps.clock.clearTimer(timer)
  }
}

/** One request and the response that it is owed. */
export interface Turn {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** True while the client waits for `100 Continue` before it sends its body. */
  expectsContinue: boolean
  /** What its body has turned out to be instead of HTTP: nothing can follow the answer. */
  broken: Problem | undefined
}

export interface ConnectionDeps {
  readonly clock: Clock
  /** How long the kernel may take to accept an answer; then the connection is cut. */
  readonly responseTimeoutMs: number
  readonly isDraining: () => boolean
  readonly begin: (turn: Turn, connection: Connection) => void
  /** A request of a closed connection that was never begun. */
  readonly abandoned: (turn: Turn) => void
  /** A request is over. */
  readonly ended: () => void
}

/** The body of the largest valid order has 8 KB; a client that sends more than this gains nothing by a kept connection. */
const READ_AWAY_BYTES = 65_536
const READ_AWAY_MS = 1_000
/** Nearly every answer comes sooner, and no client that still reads gets anything but its answer. */
const PROBE_MS = 100
/** How long a client has to read the answer and to close its side. */
const LINGER_MS = 1_000
