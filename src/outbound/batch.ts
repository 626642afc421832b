import type { Channel, Clock, Timer } from '../runtime/index.ts'
import { type Fetch, isFailure, type Layer, OutboundFailure, type PriceCall, type PriceList } from './call.ts'
import type { OutboundOptions } from './options.ts'

/**
 * Batch: calls in one currency that come within `windowMs` of the first go out as one, at most `maxSize` SKUs.
 *
 *   gathering ──window over, or full──▶ sent ──answer──▶ split: each member gets what is its own
 *   gathering, sent ──last member leaves──▶ abandoned     nothing is sent, or what was sent is aborted
 *
 * A SKU that was answered badly fails only the members that asked for it; a failed call fails them all. One that
 * pricing refuses is asked again member by member, since any of them may be what it objects to: at worst one request
 * more than there would be without batches. The batch ends with its latest member.
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
        if (current && current.size + call.skus.length > options.maxSize) {
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
        if (current.size >= options.maxSize) current.send()
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
  readonly traceparent: string
  readonly #next: Fetch
  readonly #sizes: Channel<{ size: number }>
  readonly #clock: Clock
  readonly #onClosed: (batch: Batch) => void
  readonly #controller = new AbortController()
  readonly #members = new Set<Member>()
  /** How many members ask for each SKU. */
  readonly #asked = new Map<string, number>()
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
    this.traceparent = first.traceparent
  }

  /** What its members ask for; who has left is not asked for by a retry. */
  get skus(): string[] {
    return [...this.#asked.keys()]
  }

  get size(): number {
    return this.#asked.size
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
      if (this.#members.size === 0) this.#abandon(call.signal.reason)
    }
    const member: Member = { call, resolve, reject, onAbort }
    this.#members.add(member)
    for (const sku of call.skus) this.#asked.set(sku, (this.#asked.get(sku) ?? 0) + 1)
    call.signal.addEventListener('abort', onAbort, { once: true })
  }

  send(): void {
    this.#close()
    if (this.#sent || this.#members.size === 0) return
    this.#sent = true
    this.#sizes.publish({ size: this.size })
    // As many as were asked for: pricing may object to one who has left by the time it says so.
    const shared = this.#members.size > 1
    this.#next(this).then(
      list => this.#settle(member => split(list, member)),
      (error: unknown) => {
        const apart = shared && isFailure(error, 'refused')
        this.#settle(member => (apart ? this.#alone(member) : member.reject(error)))
      },
    )
  }

  #alone({ call, resolve, reject }: Member): void {
    this.#sizes.publish({ size: call.skus.length })
    this.#next(call).then(list => split(list, { call, resolve, reject }), reject)
  }

  #settle(tell: (member: Member) => void): void {
    for (const member of this.#members) {
      this.#remove(member)
      tell(member)
    }
  }

  #remove(member: Member): void {
    this.#members.delete(member)
    for (const sku of member.call.skus) {
      const others = (this.#asked.get(sku) ?? 1) - 1
      if (others > 0) this.#asked.set(sku, others)
      else this.#asked.delete(sku)
    }
    member.call.signal.removeEventListener('abort', member.onAbort)
  }

  #abandon(reason: unknown): void {
    this.#close()
    this.#controller.abort(reason)
  }

  /** Nobody joins any more. */
  #close(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer)
    this.#timer = undefined
    this.#onClosed(this)
  }
}

function split(list: PriceList, { call, resolve, reject }: Omit<Member, 'onAbort'>): void {
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
