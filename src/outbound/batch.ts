import type { Channel, Clock, Timer } from '../runtime/index.ts'
import { type Fetch, type Layer, OutboundFailure, type PriceCall, type PriceList } from './call.ts'
import type { OutboundOptions } from './options.ts'

/**
 * Batch: calls in one currency that come within `windowMs` of the first go out as one, at most `maxSize` SKUs.
 *
 *   gathering ──window over, or full──▶ sent ──answer──▶ split: each member gets what is its own
 *   gathering, sent ──last member leaves──▶ abandoned     nothing is sent, or what was sent is aborted
 *
 * A SKU that was answered badly fails only the members that asked for it; a failed call fails them all. The batch
 * ends with its latest member.
 */
export function batch(
  options: OutboundOptions['batch'],
  sizes: Channel<{ size: number }>,
  clock: Clock,
): Layer {
  return next => {
    const gathering = new Map<string, Batch>()
    return call =>
      new Promise((resolve, reject) => {
        let current = gathering.get(call.currency)
        if (current && current.skus.length + call.skus.length > options.maxSize) {
          current.send()
          current = undefined
        }
        if (current === undefined) {
          current = new Batch(next, call, sizes, clock, ended => {
            if (gathering.get(ended.currency) === ended) gathering.delete(ended.currency)
          })
          gathering.set(call.currency, current)
          current.gather(options.windowMs)
        }
        current.add(call, resolve, reject)
        if (current.skus.length >= options.maxSize) current.send()
      })
  }
}

interface Member {
  readonly call: PriceCall
  readonly resolve: (list: PriceList) => void
  readonly reject: (error: unknown) => void
  readonly onAbort: () => void
}

class Batch implements PriceCall {
  readonly currency: string
  readonly traceId: string
  readonly #next: Fetch
  readonly #sizes: Channel<{ size: number }>
  readonly #clock: Clock
  readonly #onClosed: (batch: Batch) => void
  readonly #controller = new AbortController()
  readonly #members = new Set<Member>()
  #timer: Timer | undefined
  #sent = false

  constructor(
    next: Fetch,
    first: PriceCall,
    sizes: Channel<{ size: number }>,
    clock: Clock,
    onClosed: (batch: Batch) => void,
  ) {
    this.#next = next
    this.#sizes = sizes
    this.#clock = clock
    this.#onClosed = onClosed
    this.currency = first.currency
    this.traceId = first.traceId
  }

  get skus(): string[] {
    return [...new Set([...this.#members].flatMap(({ call }) => call.skus))]
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get endsAtMs(): number {
    return Math.max(0, ...[...this.#members].map(({ call }) => call.endsAtMs))
  }

  get endedBy(): PriceCall['endedBy'] {
    const latest = this.endsAtMs
    return [...this.#members].find(({ call }) => call.endsAtMs === latest)?.call.endedBy ?? 'limit'
  }

  gather(windowMs: number): void {
    this.#timer = this.#clock.setTimer(() => this.send(), windowMs)
  }

  add(call: PriceCall, resolve: (list: PriceList) => void, reject: (error: unknown) => void): void {
    const onAbort = () => {
      this.#remove(member)
      reject(call.signal.reason)
      if (this.#members.size === 0) this.#abandon()
    }
    const member: Member = { call, resolve, reject, onAbort }
    this.#members.add(member)
    call.signal.addEventListener('abort', onAbort, { once: true })
  }

  send(): void {
    this.#close()
    if (this.#sent || this.#members.size === 0) return
    this.#sent = true
    // Taken now: who joins late is in the next batch, and who leaves is not asked for again by a retry.
    const { skus } = this
    this.#sizes.publish({ size: skus.length })
    this.#next(this).then(
      list => this.#settle(member => split(list, member)),
      (error: unknown) => this.#settle(member => member.reject(error)),
    )
  }

  #settle(tell: (member: Member) => void): void {
    for (const member of this.#members) {
      this.#remove(member)
      tell(member)
    }
  }

  #remove(member: Member): void {
    this.#members.delete(member)
    member.call.signal.removeEventListener('abort', member.onAbort)
  }

  #abandon(): void {
    this.#close()
    this.#controller.abort()
  }

  /** Nobody joins any more. */
  #close(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer)
    this.#timer = undefined
    this.#onClosed(this)
  }
}

function split(list: PriceList, { call, resolve, reject }: Member): void {
  if (call.skus.some(sku => list.bad.includes(sku))) return reject(new OutboundFailure('failed'))
  const prices = new Map<string, number>()
  for (const sku of call.skus) {
    const price = list.prices.get(sku)
    if (price !== undefined) prices.set(sku, price)
  }
  resolve({
    prices,
    unknown: call.skus.filter(sku => list.unknown.includes(sku)),
    bad: [],
    source: list.source,
  })
}
