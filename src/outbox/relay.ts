import { type Clock, sleep } from '../runtime/index.ts'
import type { Outbox, OutboxEvent, SettleVerdict } from '../store/index.ts'
import { afterFailure, behindFailure, type Failure, type Fate } from './after-failure.ts'
import type { OutboxChannels } from './channels.ts'
import { Claim, type Lane } from './claim.ts'
import { Lanes } from './lanes.ts'
import type { OutboxOptions } from './options.ts'
import { Rest } from './rest.ts'
import type { Sink } from './sinks/sink.ts'

/**
 * Relay: takes events out of the outbox and hands them to the sink, at least once, per order in order.
 *
 *   resting ──wake(), or poll──▶ claiming ──events──▶ working ──room for another claim──▶ claiming
 *                                claiming ──nothing──▶ resting
 *   any ──close()──▶ closing: claims nothing more, hands back what has not begun ──nothing held──▶ closed
 *
 * Events of one order go one after another, those of others beside them, `maxConcurrent` at once. Behind one that failed
 * the others of its order are handed back untried. It holds two claims' worth of events at most; those of an unfinished
 * claim that are through do not count, so that one that hangs does not hold up the claims after its own.
 *
 * Claims shrink when one fails as a whole, and double again with each that does not: an outage then costs few events an
 * attempt, and a good event behind many bad ones is still reached at the next poll. While the relay is told that orders
 * need the machine, it keeps to `batchSize` events in four times `pollIntervalMs`, and catches up afterwards.
 */
export class Relay {
  readonly #deps: RelayDeps
  readonly #claims = new Set<Claim>()
  readonly #lanes: Lanes
  #claiming = false
  /** Woken while claiming: what it is about may have come too late for that claim. */
  #woken = false
  #window: number
  /** Claims that failed as a whole, one after another. */
  #failures = 0
  #failing = false
  /** A claim was put off because too many events were held. */
  #short = false
  readonly #rest: Rest
  #state: 'new' | 'open' | 'closing' | 'closed' = 'new'
  readonly #closing = new AbortController()
  /** On the monotonic clock. */
  #closeByMs = Number.POSITIVE_INFINITY
  readonly #closed = Promise.withResolvers<void>()

  constructor(deps: RelayDeps) {
    this.#deps = deps
    this.#window = deps.options.batchSize
    this.#lanes = new Lanes(deps.options.maxConcurrent)
    this.#rest = new Rest(deps.clock, () => this.#claim())
  }

  start(): void {
    if (this.#state !== 'new') return
    this.#state = 'open'
    this.#claim()
  }

  /** Something has been committed. */
  wake(): void {
    if (this.#claiming) this.#woken = true
    else this.#restAtMost(GATHER_MS)
  }

  /**
   * Hands back what has not begun at once, and what has begun when it does not end soon. A store that cannot take it
   * back holds it up for `limitMs` at most, or 3 s: what is left comes again when its lease is over.
   */
  close(limitMs = CLOSE_LIMIT_MS): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'closing'
      this.#closing.abort()
      this.#rest.end()
      for (const lane of this.#lanes.take()) this.#handBack(lane, lane.events)
      const { clock } = this.#deps
      const mostMs = Math.min(limitMs, CLOSE_LIMIT_MS)
      this.#closeByMs = clock.nowMs() + mostMs
      const timers = [
        clock.setTimer(() => {
          for (const claim of this.#claims) claim.end()
        }, mostMs * CLOSE_SHARE),
        clock.setTimer(this.#closed.resolve, mostMs),
      ]
      this.#closed.promise.then(() => timers.forEach(timer => void clock.clearTimer(timer)))
    } else if (this.#state === 'new') {
      this.#state = 'closing'
    }
    this.#closeIfDone()
    return this.#closed.promise
  }

  get #hasRoom(): boolean {
    let held = 0
    for (const claim of this.#claims) held += claim.room
    return held <= this.#window
  }

  #restAtMost(ms: number): void {
    if (this.#state === 'open') this.#rest.atMost(ms)
  }

  async #claim(): Promise<void> {
    const { options, outbox, clock } = this.#deps
    if (this.#claiming || this.#state !== 'open') return
    // Room is made by an order or a claim that ends, which then comes here again.
    this.#short = !this.#hasRoom
    if (this.#short) return
    const limit = this.#window
    this.#rest.end()
    this.#claiming = true
    this.#woken = false
    const askedMs = clock.nowMs()
    const verdict = await outbox.claim({ limit, leaseMs: options.leaseMs, atMs: clock.wallMs() })
    this.#claiming = false
    const events = verdict.kind === 'claimed' ? verdict.events : []
    if (verdict.kind === 'claimed') this.#begin(new Claim(verdict.token, events), events, askedMs)
    if (this.#deps.isBusy()) {
      const paceMs = (BUSY_PACE * options.pollIntervalMs * Math.max(1, events.length)) / options.batchSize
      this.#rest.putOff(askedMs + Math.min(paceMs, MOST_PUT_OFF_MS))
    }
    if (verdict.kind !== 'unavailable' && (this.#woken || events.length === limit)) this.#restAtMost(0)
    else this.#restAtMost(options.pollIntervalMs)
    this.#closeIfDone()
  }

  #begin(claim: Claim, events: readonly OutboxEvent[], askedMs: number): void {
    const { clock, options } = this.#deps
    this.#claims.add(claim)
    // With time enough left to settle it before somebody else may claim it.
    const leftMs = askedMs + LEASE_USED * options.leaseMs - clock.nowMs()
    const timer = clock.setTimer(() => this.#end(claim), Math.max(0, Math.ceil(leftMs)))
    claim.signal.addEventListener('abort', () => clock.clearTimer(timer), { once: true })
    const orders = Map.groupBy(events, ({ subject }) => subject)
    const lanes = [...orders.values()].map(events => ({ claim, events }))
    if (this.#state === 'open') {
      for (const lane of lanes) this.#lanes.add(lane)
      this.#proceed()
      this.#letGo(claim)
    } else {
      for (const lane of lanes) this.#handBack(lane, lane.events)
    }
  }

  /** The lease is nearly over. */
  #end(claim: Claim): void {
    claim.end()
    for (const lane of this.#lanes.take(claim)) this.#handBack(lane, lane.events)
  }

  /** Other orders must not wait for what hangs: neither for a place, nor for what came through beside it. */
  async #letGo(claim: Claim): Promise<void> {
    while (!claim.over) {
      await sleep(this.#deps.clock, PART_MS, claim.signal).catch(() => {})
      if (claim.over) return
      for (const lane of this.#lanes.take(claim, 'again')) this.#handBack(lane, lane.events, AGAIN_LATER_MS)
      const part = claim.part()
      if (part && (await this.#trySettle(claim, part.keeps)) === 'settled') part.settled()
    }
  }

  #proceed(): void {
    for (let lane = this.#lanes.next(); lane !== undefined; lane = this.#lanes.next()) {
      const running = lane
      this.#run(running).finally(() => {
        this.#lanes.done(running)
        this.#proceed()
        if (this.#short && this.#hasRoom) this.#restAtMost(0)
      })
    }
  }

  async #run({ claim, events }: Lane): Promise<void> {
    const { channels, clock, sink } = this.#deps
    for (const [place, event] of events.entries()) {
      if (claim.over || this.#state !== 'open') return this.#handBack({ claim }, events.slice(place))
      const delivery = await sink.deliver(event, claim.signal)
      if (delivery.kind === 'delivered') {
        claim.deliver(event)
        channels.delivered.publish({ ageMs: clock.wallMs() - event.atMs })
        continue
      }
      // Stopped by us, which is no fault of the event.
      if (claim.over) return this.#handBack({ claim }, events.slice(place))
      this.#fail(claim, event, delivery, events.slice(place + 1))
      break
    }
    this.#settleIfFinished(claim)
  }

  #fail(claim: Claim, event: OutboxEvent, delivery: Failure, behind: readonly OutboxEvent[]): void {
    const { channels, clock, options, random } = this.#deps
    claim.failure ??= delivery.reason
    channels.failed.publish({ reason: delivery.reason })
    const fate = afterFailure(event, delivery, options, clock.wallMs(), random)
    this.#except(claim, event, fate)
    for (const other of behind) this.#except(claim, other, behindFailure(other, fate))
  }

  #except(claim: Claim, event: OutboxEvent, fate: Fate): void {
    claim.except(event, fate)
    const { attempts, dueAtMs, reason } = fate
    if (dueAtMs === undefined) this.#deps.channels.parked.publish({ id: event.id, reason, attempts })
  }

  #handBack({ claim }: Pick<Lane, 'claim'>, events: readonly OutboxEvent[], delayMs = 0): void {
    const dueAtMs = this.#deps.clock.wallMs() + delayMs
    for (const event of events)
      claim.except(event, { attempts: event.attempts, dueAtMs, reason: HANDED_BACK })
    this.#settleIfFinished(claim)
  }

  #settleIfFinished(claim: Claim): void {
    if (!claim.finished || !this.#claims.has(claim)) return
    this.#adapt(claim)
    claim.end()
    void this.#settle(claim)
  }

  /** Tries for as long as the lease, or closing, may last; after that the events come again by themselves. */
  async #settle(claim: Claim): Promise<void> {
    const { clock, options } = this.#deps
    const giveUpMs = clock.nowMs() + options.leaseMs
    while ((await this.#trySettle(claim, [])) === 'unavailable') {
      if (clock.nowMs() >= Math.min(giveUpMs, this.#closeByMs)) break
      // Closing ends a long wait.
      if (this.#state === 'open')
        await sleep(clock, options.pollIntervalMs, this.#closing.signal).catch(() => {})
      else await sleep(clock, CLOSING_PAUSE_MS, NEVER.signal)
    }
    this.#claims.delete(claim)
    this.#closeIfDone()
    this.#restAtMost(0)
  }

  #trySettle({ token, exceptions }: Claim, keeps: readonly number[]): Promise<SettleVerdict> {
    return this.#deps.outbox.settle({ token, exceptions, keeps, atMs: this.#deps.clock.wallMs() })
  }

  #adapt({ delivered, failure }: Claim): void {
    const { options, clock } = this.#deps
    if (delivered > 0) {
      this.#window = Math.min(options.batchSize, 2 * this.#window)
      this.#failures = 0
      this.#setFailing(false, '')
    } else if (failure !== undefined) {
      this.#window = Math.min(options.batchSize, SMALL_CLAIM)
      this.#rest.putOff(clock.nowMs() + Math.min(options.pollIntervalMs, MOST_PUT_OFF_MS))
      if (++this.#failures >= FAILING_CLAIMS) this.#setFailing(true, failure)
    }
  }

  #setFailing(failing: boolean, reason: string): void {
    if (failing !== this.#failing) this.#deps.channels.sink.publish({ failing, reason })
    this.#failing = failing
  }

  #closeIfDone(): void {
    if (this.#state !== 'closing' || this.#claiming || this.#claims.size > 0) return
    this.#state = 'closed'
    this.#closed.resolve()
  }
}

export interface RelayDeps {
  readonly outbox: Outbox
  readonly sink: Sink
  readonly options: OutboxOptions
  readonly channels: OutboxChannels
  readonly clock: Clock
  /** Whether orders come in so fast that they should not be disturbed. */
  readonly isBusy: () => boolean
  /** In [0, 1). */
  readonly random: () => number
}

const HANDED_BACK = 'handed back'
// From a commit to the claim that it causes: what is committed meanwhile comes along in the same transaction.
const GATHER_MS = 3
// A quarter of what polling could take: the whole cost the orders 28 % on two cores, half of it 11 %, and this 6 %.
const BUSY_PACE = 4
// From a claim to the moment at which it lets go of what is through, and of what still waits for its second try.
const PART_MS = 200
const AGAIN_LATER_MS = 1_000
const LEASE_USED = 0.8
const MOST_PUT_OFF_MS = 500
const SMALL_CLAIM = 8
// One poisoned event alone is a claim that fails as a whole.
const FAILING_CLAIMS = 3
// The drain has 4 s beside it by default. Two thirds are for consumers: who has not answered by then gets the event again.
// The rest is for a store that is locked just then, and has that time to take everything back.
const CLOSE_LIMIT_MS = 3_000
const CLOSE_SHARE = 2 / 3
const CLOSING_PAUSE_MS = 50
const NEVER = new AbortController()
