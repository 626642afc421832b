import type {
  CommitVerdict,
  KeyScope,
  Lookup,
  OrderWrite,
  Store,
  StoredOrder,
  StoredReply,
} from '../../src/store/index.ts'

/**
 * A store in memory, for tests of what stands above the port: the unique constraint and both look-ups are true,
 * durability is not. `onCommit` and `onLookup` answer in its place when they are set.
 */
export class MemoryStore implements Store {
  /** Every write that was asked for, stored or not. */
  readonly writes: OrderWrite[] = []
  lookups = 0
  trouble: string | undefined
  onCommit: ((write: OrderWrite, signal: AbortSignal) => CommitVerdict | Promise<CommitVerdict>) | undefined
  onLookup: ((signal: AbortSignal) => Exclude<Lookup<never>, { kind: 'found' }>) | undefined
  readonly #replies = new Map<string, StoredReply>()
  readonly #orders = new Map<string, StoredOrder>()

  get orders(): number {
    return this.#orders.size
  }

  async commit(write: OrderWrite, signal: AbortSignal): Promise<CommitVerdict> {
    this.writes.push(write)
    if (this.onCommit) return this.onCommit(write, signal)
    if (signal.aborted) return { kind: 'withdrawn' }
    const reply = this.#replies.get(keyOf(write))
    if (reply) return { kind: 'taken', reply }
    const { version, json } = write.order
    this.#replies.set(keyOf(write), { fingerprint: write.fingerprint, ...write.reply, version, json })
    this.#orders.set(JSON.stringify([write.tenant, write.order.id]), { version, json })
    return { kind: 'created' }
  }

  async findReply(scope: KeyScope, signal: AbortSignal): Promise<Lookup<StoredReply>> {
    return this.#find(this.#replies.get(keyOf(scope)), signal)
  }

  async findOrder(tenant: string, id: string, signal: AbortSignal): Promise<Lookup<StoredOrder>> {
    return this.#find(this.#orders.get(JSON.stringify([tenant, id])), signal)
  }

  degraded(): string | undefined {
    return this.trouble
  }

  async close(): Promise<void> {}

  #find<Found>(value: Found | undefined, signal: AbortSignal): Lookup<Found> {
    this.lookups++
    if (this.onLookup) return this.onLookup(signal)
    if (signal.aborted) return { kind: 'withdrawn' }
    return value === undefined ? { kind: 'absent' } : { kind: 'found', value }
  }
}

function keyOf({ tenant, operation, key }: KeyScope): string {
  return JSON.stringify([tenant, operation, key])
}
