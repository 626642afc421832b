import type {
  CommitVerdict,
  KeyScope,
  ListedOrder,
  Lookup,
  OrdersPage,
  OrderWrite,
  PurgeAsk,
  Purged,
  Store,
  StoredOrder,
  StoredReply,
} from '../../src/store/index.ts'
import { type KeptEvents, MemoryOutbox, purged } from './memory-outbox.ts'

/**
 * A store in memory, for tests of what stands above the port. It passes the contract of every driver; only that it
 * loses everything with the process. `onCommit` and `onLookup` answer in its place when they are set.
 */
export class MemoryStore implements Store {
  /** Every write that was asked for, stored or not. */
  readonly writes: OrderWrite[] = []
  /** What an `onDurable` threw. */
  readonly thrown: unknown[] = []
  lookups = 0
  trouble: string | undefined
  /**
   * `durable` runs the caller's `onDurable`, unless it has run: a write that is `unknown` to its caller may turn out
   * durable at any time. With `created` it runs by itself.
   */
  onCommit:
    | ((
        write: OrderWrite,
        signal: AbortSignal,
        durable: () => void,
      ) => CommitVerdict | Promise<CommitVerdict>)
    | undefined
  onLookup: ((signal: AbortSignal) => Exclude<Lookup<never>, { kind: 'found' }>) | undefined
  readonly outbox: MemoryOutbox
  readonly #kept: Kept
  #closed = false

  /** Goes on with what another has kept. */
  constructor(before?: MemoryStore) {
    this.#kept = before
      ? before.#kept
      : { replies: new Map(), orders: new Map(), events: MemoryOutbox.nothing() }
    this.outbox = new MemoryOutbox(this.#kept.events, () => this.#closed)
  }

  get keys(): number {
    return this.#kept.replies.size
  }

  get orders(): number {
    return this.#kept.orders.size
  }

  get events(): number {
    return this.outbox.size
  }

  async commit(write: OrderWrite, signal: AbortSignal, onDurable?: () => void): Promise<CommitVerdict> {
    this.writes.push(write)
    const durable = this.#once(onDurable)
    if (this.onCommit === undefined) return this.#commit(write, signal, durable)
    const verdict = await this.onCommit(write, signal, durable)
    if (verdict.kind === 'created') durable()
    return verdict
  }

  async findReply(scope: KeyScope, signal: AbortSignal): Promise<Lookup<StoredReply>> {
    return this.#find(() => this.#kept.replies.get(keyOf(scope))?.reply, signal)
  }

  async findOrder(tenant: string, id: string, signal: AbortSignal): Promise<Lookup<StoredOrder>> {
    return this.#find(() => {
      const row = this.#kept.orders.get(id)
      return row?.tenant === tenant ? { version: row.order.version, json: row.order.json } : undefined
    }, signal)
  }

  async findOrders(
    tenant: string,
    customerId: string,
    { limit, before }: OrdersPage,
    signal: AbortSignal,
  ): Promise<Lookup<readonly ListedOrder[]>> {
    return this.#find(
      () =>
        [...this.#kept.orders.values()]
          .filter(row => row.tenant === tenant && row.customerId === customerId)
          .map(({ order }) => order)
          .filter(({ id }) => before === undefined || id < before)
          .sort((one, other) => (one.id < other.id ? 1 : -1))
          .slice(0, limit),
      signal,
    )
  }

  async purgeKeys(ask: PurgeAsk): Promise<Purged | undefined> {
    if (this.#closed) return undefined
    const { replies } = this.#kept
    return purged(
      ask,
      [...replies].map(([key, { place, atMs }]) => ({ place, atMs, drop: () => replies.delete(key) })),
    )
  }

  degraded(): string | undefined {
    return this.trouble
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  async #commit(write: OrderWrite, signal: AbortSignal, durable: () => void): Promise<CommitVerdict> {
    if (signal.aborted) return { kind: 'withdrawn' }
    if (this.#closed) return { kind: 'unavailable' }
    // Claimed a moment after it was asked for: until then it can be withdrawn.
    await undefined
    if (signal.aborted) return { kind: 'withdrawn' }
    const verdict = this.#judge(write)
    if (verdict.kind === 'created') durable()
    return verdict
  }

  /** The key first, then the version. */
  #judge(write: OrderWrite): CommitVerdict {
    const { replies, orders } = this.#kept
    const reply = replies.get(keyOf(write))?.reply
    if (reply) return { kind: 'taken', reply }
    const { id, version, json } = write.order
    const row = orders.get(id)
    if (version === 1) {
      if (row) return { kind: 'unavailable' }
    } else if (row?.tenant !== write.tenant || row.order.version !== version - 1) return { kind: 'outdated' }
    replies.set(keyOf(write), {
      reply: { fingerprint: write.fingerprint, ...write.reply, version, json },
      atMs: write.atMs,
      place: Math.max(0, ...[...replies.values()].map(({ place }) => place)) + 1,
    })
    orders.set(id, {
      tenant: write.tenant,
      customerId: row?.customerId ?? write.order.customerId,
      order: { id, version, json },
    })
    this.outbox.add(write)
    return { kind: 'created' }
  }

  #once(onDurable: (() => void) | undefined): () => void {
    let waiting = onDurable
    return () => {
      const run = waiting
      waiting = undefined
      try {
        run?.()
      } catch (error) {
        this.thrown.push(error)
      }
    }
  }

  #find<Found>(look: () => Found | undefined, signal: AbortSignal): Lookup<Found> {
    this.lookups++
    if (this.onLookup) return this.onLookup(signal)
    if (signal.aborted) return { kind: 'withdrawn' }
    if (this.#closed) return { kind: 'unavailable' }
    const value = look()
    return value === undefined ? { kind: 'absent' } : { kind: 'found', value }
  }
}

/** What outlives a store that was closed. */
interface Kept {
  /** In the order of their places, which is that of their making. */
  readonly replies: Map<
    string,
    { readonly reply: StoredReply; readonly atMs: number; readonly place: number }
  >
  /** By id alone: it is the primary key. */
  readonly orders: Map<
    string,
    { readonly tenant: string; readonly customerId: string; readonly order: ListedOrder }
  >
  readonly events: KeptEvents
}

function keyOf({ tenant, operation, key }: KeyScope): string {
  return JSON.stringify([tenant, operation, key])
}
