import type { Backlog, DeadEvent, OutboxEvent } from '../outbox-port.ts'
import type { KeyScope, ListedOrder, Lookup, OrdersPage, StoredOrder, StoredReply } from '../port.ts'
import { BatchThread, type BatchThreadSpec } from './batch-thread.ts'
import {
  FINDING,
  type Flat,
  LOOKUP,
  packLookup,
  packOrderLookup,
  packOrdersLookup,
  packReplyLookup,
  unpackBacklog,
  unpackDead,
  unpackEvents,
  unpackOrder,
  unpackOrders,
  unpackReply,
} from './protocol.ts'

/**
 * Look-ups: the event loop's side of the reader. Reading promises nothing, so whoever stops waiting simply leaves:
 *
 *   waiting ──answer──▶ settled(found or absent, or unavailable when the query failed)
 *   waiting ──abort──▶ settled(withdrawn)         an answer that follows is dropped
 *   waiting ──reader gone──▶ settled(unavailable)
 */
export class Lookups {
  readonly thread: BatchThread<PendingLookup>

  constructor(deps: LookupsDeps) {
    this.thread = new BatchThread({
      ...deps,
      pack: batch => batch.flatMap(pending => pending.question),
      settle: (batch, values) => settleAll(batch, values),
      lost: batch => {
        for (const pending of batch) pending.settle(UNAVAILABLE)
      },
      refuse: pending => pending.settle(UNAVAILABLE),
    })
  }

  findReply(scope: KeyScope, signal: AbortSignal): Promise<Lookup<StoredReply>> {
    return this.#find(packReplyLookup(scope), unpackReply, signal)
  }

  findOrder(tenant: string, id: string, signal: AbortSignal): Promise<Lookup<StoredOrder>> {
    return this.#find(packOrderLookup(tenant, id), unpackOrder, signal)
  }

  findOrders(
    tenant: string,
    customerId: string,
    page: OrdersPage,
    signal: AbortSignal,
  ): Promise<Lookup<readonly ListedOrder[]>> {
    return this.#find(packOrdersLookup(tenant, customerId, page), unpackOrders, signal)
  }

  /** The events of a claim. */
  findEvents(
    token: number,
    first: number,
    last: number,
    signal: AbortSignal,
  ): Promise<Lookup<readonly OutboxEvent[]>> {
    return this.#find(packLookup(LOOKUP.events, first, last, token), unpackEvents, signal)
  }

  findDead(after: number, limit: number, signal: AbortSignal): Promise<Lookup<readonly DeadEvent[]>> {
    return this.#find(packLookup(LOOKUP.dead, after, limit), unpackDead, signal)
  }

  measureOutbox(signal: AbortSignal): Promise<Lookup<Backlog>> {
    return this.#find(packLookup(LOOKUP.backlog), unpackBacklog, signal)
  }

  #find<Found>(question: Flat, unpack: Unpack<Found>, signal: AbortSignal): Promise<Lookup<Found>> {
    if (signal.aborted) return Promise.resolve(WITHDRAWN)
    return new Promise(resolve => {
      const onAbort = () => {
        this.thread.withdraw(pending)
        pending.settle(WITHDRAWN)
      }
      const settle = (lookup: Lookup<Found>) => {
        signal.removeEventListener('abort', onAbort)
        resolve(lookup)
      }
      const pending: PendingLookup = {
        question,
        found: (values, at, length) => settle({ kind: 'found', value: unpack(values, at, length) }),
        settle,
      }
      if (this.thread.offer(pending)) signal.addEventListener('abort', onAbort)
      else resolve(UNAVAILABLE)
    })
  }
}

export type LookupsDeps = Pick<
  BatchThreadSpec<PendingLookup>,
  'clock' | 'maxBatch' | 'maxPending' | 'onHealth' | 'onTrouble' | 'start' | 'isPassing'
>

/** One look-up and its caller. Settling it a second time does nothing, as with any promise. */
export interface PendingLookup {
  readonly question: Flat
  /** What was found: `length` values from `at` on. */
  found(values: Flat, at: number, length: number): void
  settle(lookup: Missing): void
}

type Missing = { readonly kind: 'absent' | 'withdrawn' | 'unavailable' }

type Unpack<Found> = (values: Flat, at: number, length: number) => Found

function settleAll(batch: readonly PendingLookup[], values: Flat): void {
  let at = 0
  for (const pending of batch) {
    const code = values[at++]
    if (code === FINDING.found) {
      const length = Number(values[at++])
      pending.found(values, at, length)
      at += length
    } else {
      pending.settle(code === FINDING.absent ? ABSENT : UNAVAILABLE)
    }
  }
}

const ABSENT: Missing = Object.freeze({ kind: 'absent' })
const WITHDRAWN: Missing = Object.freeze({ kind: 'withdrawn' })
const UNAVAILABLE: Missing = Object.freeze({ kind: 'unavailable' })
