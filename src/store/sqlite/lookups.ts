import type { KeyScope, Lookup, StoredOrder, StoredReply } from '../port.ts'
import { BatchThread, type BatchThreadSpec } from './batch-thread.ts'
import {
  FINDING,
  type Flat,
  ORDER_LENGTH,
  packOrderLookup,
  packReplyLookup,
  REPLY_LENGTH,
  unpackOrder,
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
    return this.#find(packReplyLookup(scope), REPLY, signal)
  }

  findOrder(tenant: string, id: string, signal: AbortSignal): Promise<Lookup<StoredOrder>> {
    return this.#find(packOrderLookup(tenant, id), ORDER, signal)
  }

  #find<Found>(question: Flat, form: Form<Found>, signal: AbortSignal): Promise<Lookup<Found>> {
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
        length: form.length,
        found: (values, at) => settle({ kind: 'found', value: form.unpack(values, at) }),
        settle,
      }
      if (this.thread.offer(pending)) signal.addEventListener('abort', onAbort)
      else resolve(UNAVAILABLE)
    })
  }
}

export type LookupsDeps = Pick<
  BatchThreadSpec<PendingLookup>,
  'clock' | 'maxBatch' | 'maxPending' | 'onHealth' | 'onTrouble' | 'start'
>

/** One look-up and its caller. Settling it a second time does nothing, as with any promise. */
export interface PendingLookup {
  readonly question: Flat
  /** How many values stand for what was found. */
  readonly length: number
  found(values: Flat, at: number): void
  settle(lookup: Missing): void
}

type Missing = { readonly kind: 'absent' | 'withdrawn' | 'unavailable' }

interface Form<Found> {
  readonly length: number
  unpack(values: Flat, at: number): Found
}

const REPLY: Form<StoredReply> = { length: REPLY_LENGTH, unpack: unpackReply }
const ORDER: Form<StoredOrder> = { length: ORDER_LENGTH, unpack: unpackOrder }

function settleAll(batch: readonly PendingLookup[], values: Flat): void {
  let at = 0
  for (const pending of batch) {
    const code = values[at++]
    if (code === FINDING.found) {
      pending.found(values, at)
      at += pending.length
    } else {
      pending.settle(code === FINDING.absent ? ABSENT : UNAVAILABLE)
    }
  }
}

const ABSENT: Missing = Object.freeze({ kind: 'absent' })
const WITHDRAWN: Missing = Object.freeze({ kind: 'withdrawn' })
const UNAVAILABLE: Missing = Object.freeze({ kind: 'unavailable' })
