import { getEventListeners } from 'node:events'
import { type CommitVerdict, storeChannels } from '../../src/store/index.ts'
import { Commits } from '../../src/store/sqlite/commits.ts'
import { CLAIM, type Flat, ITEM, ITEM_LENGTH, VERDICT, WRITE } from '../../src/store/sqlite/protocol.ts'
import { orderWrite } from '../support/order-write.ts'
import { VirtualClock } from '../support/virtual-clock.ts'
import { FakeThreads } from './fake-threads.ts'

export interface CommitsChoices {
  readonly maxBatch?: number
  readonly maxPending?: number
  readonly settleGraceMs?: number
}

/** The event loop's side of the writer over threads and a clock in the hands of a test. */
export class CommitsBench {
  readonly clock = new VirtualClock()
  readonly threads = new FakeThreads()
  readonly channels = storeChannels()
  readonly late: string[] = []
  readonly troubles: string[] = []
  readonly commits: Commits
  slots = new Int32Array(new SharedArrayBuffer(0))

  constructor({ maxBatch = 4, maxPending = 8, settleGraceMs = 25 }: CommitsChoices = {}) {
    this.channels.late.subscribe(({ kind }) => this.late.push(kind))
    this.commits = new Commits({
      clock: this.clock,
      channels: this.channels,
      maxBatch,
      maxPending,
      settleGraceMs,
      maxChores: 16,
      onHealth: () => {},
      onTrouble: reason => this.troubles.push(reason),
      start: (slots, listener) => {
        this.slots = slots
        return this.threads.start(listener)
      },
    })
  }

  /** With the first thread ready. */
  static async opened(choices?: CommitsChoices): Promise<CommitsBench> {
    const bench = new CommitsBench(choices)
    const opened = bench.commits.thread.open()
    bench.threads.say({ kind: 'ready' })
    await opened
    return bench
  }

  /** The writer holds the lock: takes every write that was not taken back. */
  claim(count: number): boolean[] {
    return Array.from({ length: count }, (_, place) => {
      return Atomics.compareExchange(this.slots, place, CLAIM.queued, CLAIM.claimed) === CLAIM.queued
    })
  }

  /** The writer created what it had claimed. */
  created(claimed: readonly boolean[]): Flat {
    return claimed.map(ours => (ours ? VERDICT.created : VERDICT.passedOver))
  }
}

/** One commit and what became of it; `onDurable` adds to counting. */
export function commit(bench: CommitsBench, onDurable: () => void = () => {}) {
  const controller = new AbortController()
  const write = orderWrite()
  const state: { verdict?: CommitVerdict['kind']; durable: number } = { durable: 0 }
  const heard = () => {
    state.durable++
    onDurable()
  }
  const done = bench.commits.commit(write, controller.signal, heard).then(verdict => {
    state.verdict = verdict.kind
    return verdict
  })
  const listeners = () => getEventListeners(controller.signal, 'abort').length
  return { abort: () => controller.abort(), write, state, done, listeners }
}

/** Which orders a batch writes, and in which order. */
export function orderIdsOf(batch: Flat): string[] {
  const ids: string[] = []
  for (let at = 0; at < batch.length; at += 1 + (ITEM_LENGTH[Number(batch[at])] ?? Number.NaN)) {
    if (batch[at] === ITEM.order) ids.push(String(batch[at + 1 + WRITE.orderId]))
  }
  return ids
}
