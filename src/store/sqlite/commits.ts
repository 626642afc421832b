import type { Clock, Timer } from '../../runtime/index.ts'
import type { StoreChannels } from '../channels.ts'
import type { CommitVerdict, OrderWrite } from '../port.ts'
import { BatchThread, type BatchThreadSpec } from './batch-thread.ts'
import { Chore } from './chore.ts'
import { reasonOf } from './faults.ts'
import { CLAIM, type Flat, packWrite, REPLY_LENGTH, unpackReply, VERDICT } from './protocol.ts'
import type { ThreadListener, ThreadPort } from './thread.ts'

/**
 * Commits: the event loop's side of the writer. Each write has one end, and its caller never waits longer than its
 * signal and the grace:
 *
 *   queued ──batch sent──▶ sent ──verdict──▶ settled(verdict)
 *   queued ──abort──▶ settled(withdrawn)
 *   sent ──abort, not claimed──▶ settled(withdrawn)       the writer will pass it over
 *   sent ──abort, claimed──▶ overdue ──verdict──▶ settled(verdict)
 *   overdue ──grace over──▶ settled(unknown)              a verdict that follows is reported as late
 *   sent, overdue ──writer gone──▶ settled(unknown when claimed, else unavailable)
 *   queued ──writer gone──▶ settled(unavailable)
 *
 * Settled is final; listener and timer are gone by then. The write itself goes on without its caller: `onDurable`
 * runs when the answer of its batch says created, or when the writer is gone with it claimed, whichever state it is
 * in here.
 */
export class Commits {
  readonly thread: BatchThread<WriterItem>
  readonly #deps: CommitsDeps
  readonly #slots: Int32Array<SharedArrayBuffer>
  /** Orders that wait, and chores that have not ended: each kind has a bound of its own. */
  #queued = 0
  #chores = 0

  constructor(deps: CommitsDeps) {
    this.#deps = deps
    const slots = new Int32Array(new SharedArrayBuffer(deps.maxBatch * Int32Array.BYTES_PER_ELEMENT))
    this.#slots = slots
    this.thread = new BatchThread({
      ...deps,
      // Places of their own, so that neither kind is ever refused for the other.
      maxPending: deps.maxPending + deps.maxChores,
      start: listener => deps.start(slots, listener),
      pack: batch => this.#pack(batch),
      settle: (batch, values, durationMs) => this.#settle(batch, values, durationMs),
      lost: batch => this.#lost(batch),
      refuse: item => this.#refuse(item),
    })
  }

  commit(write: OrderWrite, signal: AbortSignal, onDurable?: () => void): Promise<CommitVerdict> {
    if (signal.aborted) return Promise.resolve(WITHDRAWN)
    return new Promise(resolve => {
      const pending = new PendingWrite(write, signal, onDurable, resolve, this)
      if (this.#queued >= this.#deps.maxPending || !this.thread.offer(pending)) return resolve(UNAVAILABLE)
      this.#queued++
      signal.addEventListener('abort', pending)
    })
  }

  /** Runs a chore in the next group; its answer, or undefined when the store could not do it or cannot tell. */
  run(fields: Flat): Promise<Flat | undefined> {
    return new Promise(resolve => {
      const chore = new Chore(fields, resolve)
      if (this.#chores >= this.#deps.maxChores || !this.thread.offer(chore)) return resolve(undefined)
      this.#chores++
      chore.onEnd = () => this.#chores--
    })
  }

  /** The caller stops waiting: takes the write back if the writer has not claimed it. */
  abandon(pending: PendingWrite): void {
    const { place } = pending
    if (place === undefined && this.thread.withdraw(pending)) {
      this.#queued--
      pending.settle(WITHDRAWN)
    } else if (
      place !== undefined &&
      Atomics.compareExchange(this.#slots, place, CLAIM.queued, CLAIM.withdrawn) === CLAIM.queued
    ) {
      pending.settle(WITHDRAWN)
    } else {
      pending.waitUntilOver(this.#deps.clock, this.#deps.settleGraceMs)
    }
  }

  #pack(batch: readonly WriterItem[]): Flat {
    const items: Flat = []
    for (const [place, item] of batch.entries()) {
      Atomics.store(this.#slots, place, CLAIM.queued)
      if (item instanceof Chore) {
        items.push(...item.fields)
      } else {
        this.#queued--
        item.place = place
        packWrite(items, item.write)
      }
    }
    return items
  }

  #refuse(item: WriterItem): void {
    if (item instanceof Chore) return item.end(undefined)
    this.#queued--
    item.settle(UNAVAILABLE)
  }

  #settle(batch: readonly WriterItem[], values: Flat, durationMs: number): void {
    let at = 0
    let batchSize = 0
    for (const pending of batch) {
      if (pending instanceof Chore) {
        at = pending.answer(values, at)
        continue
      }
      const code = values[at++]
      let verdict: CommitVerdict = UNAVAILABLE
      if (code === VERDICT.created) verdict = CREATED
      if (code === VERDICT.outdated) verdict = OUTDATED
      if (code === VERDICT.taken) {
        verdict = { kind: 'taken', reply: unpackReply(values, at) }
        at += REPLY_LENGTH
      }
      if (verdict === CREATED) {
        batchSize++
        this.#durable(pending)
      }
      const late = pending.verdict?.kind === 'unknown'
      pending.settle(verdict)
      if (late) this.#deps.channels.late.publish({ kind: verdict.kind })
    }
    if (batchSize > 0) this.#deps.channels.committed.publish({ durationMs, batchSize })
  }

  #lost(batch: readonly WriterItem[]): void {
    for (const [place, pending] of batch.entries()) {
      if (pending instanceof Chore) {
        pending.end(undefined)
        continue
      }
      const claimed = Atomics.load(this.#slots, place) === CLAIM.claimed
      if (claimed) this.#durable(pending)
      pending.settle(claimed ? UNKNOWN : UNAVAILABLE)
    }
  }

  /** What the hook throws is a fault of its owner; the verdicts behind it are others'. */
  #durable({ onDurable }: PendingWrite): void {
    try {
      onDurable?.()
    } catch (error) {
      this.#deps.onTrouble(`what follows a durable write failed: ${reasonOf(error)}`)
    }
  }
}

export interface CommitsDeps
  extends Pick<BatchThreadSpec<WriterItem>, 'clock' | 'maxBatch' | 'maxPending' | 'onHealth' | 'onTrouble'> {
  readonly channels: StoreChannels
  readonly settleGraceMs: number
  /** How many chores may wait, beside the writes. */
  readonly maxChores: number
  start(slots: Int32Array<SharedArrayBuffer>, listener: ThreadListener): ThreadPort
}

type WriterItem = PendingWrite | Chore

/** One write and its caller. Listens to the signal itself, which spares a closure for each order. */
export class PendingWrite {
  /** Where it stands in the batch in flight; undefined while it is queued. */
  place: number | undefined
  /** Undefined until it is settled. */
  verdict: CommitVerdict | undefined
  readonly write: OrderWrite
  readonly onDurable: (() => void) | undefined
  readonly #signal: AbortSignal
  readonly #resolve: (verdict: CommitVerdict) => void
  readonly #commits: Commits
  #grace: { readonly clock: Clock; readonly timer: Timer } | undefined

  constructor(
    write: OrderWrite,
    signal: AbortSignal,
    onDurable: (() => void) | undefined,
    resolve: (verdict: CommitVerdict) => void,
    commits: Commits,
  ) {
    this.write = write
    this.onDurable = onDurable
    this.#signal = signal
    this.#resolve = resolve
    this.#commits = commits
  }

  /** The signal has aborted. */
  handleEvent(): void {
    this.#commits.abandon(this)
  }

  waitUntilOver(clock: Clock, graceMs: number): void {
    this.#grace = { clock, timer: clock.setTimer(() => this.settle(UNKNOWN), graceMs) }
  }

  /** The first verdict stands; a later one changes nothing. */
  settle(verdict: CommitVerdict): void {
    if (this.verdict) return
    this.verdict = verdict
    this.#signal.removeEventListener('abort', this)
    if (this.#grace) this.#grace.clock.clearTimer(this.#grace.timer)
    this.#resolve(verdict)
  }
}

const CREATED: CommitVerdict = Object.freeze({ kind: 'created' })
const OUTDATED: CommitVerdict = Object.freeze({ kind: 'outdated' })
const WITHDRAWN: CommitVerdict = Object.freeze({ kind: 'withdrawn' })
const UNKNOWN: CommitVerdict = Object.freeze({ kind: 'unknown' })
const UNAVAILABLE: CommitVerdict = Object.freeze({ kind: 'unavailable' })
