import {
  type Backlog,
  type ClaimAsk,
  type ClaimVerdict,
  type DeadEvent,
  LONGEST_WAIT_MS,
  type Lookup,
  type OrderWrite,
  type Outbox,
  type OutboxEvent,
  type PurgeAsk,
  type Purged,
  SET_BACK_MS,
  type SettleException,
  type Settlement,
  type SettleVerdict,
} from '../../src/store/index.ts'

/** What outlives a store that was closed. */
export interface KeptEvents {
  newest: number
  newestToken: number
  /** By sequence, and in its order; what is purged is gone. */
  readonly events: Map<number, KeptEvent>
  readonly claims: Map<number, { readonly endsAtMs: number }>
  readonly newestOfOrder: Map<string, number>
}

interface KeptEvent {
  readonly event: Omit<OutboxEvent, 'attempts'>
  /** The event of the same order before it. */
  readonly after: number | undefined
  attempts: number
  state: EventState
}

type EventState =
  | { readonly kind: 'fresh' | 'delivered' }
  | { readonly kind: 'claimed'; readonly token: number; readonly dueAtMs: number }
  | { readonly kind: 'waiting'; readonly dueAtMs: number }
  | { readonly kind: 'dead'; readonly reason: string }

// As in the embedded store, so that a test can hold the two against each other look by look.
const BEHIND_MS = 100
const MOST_LOOKED_AT = 1_600

/** The outbox of a store in memory: one state for each event, and every rule of the port as plainly as it can be said. */
export class MemoryOutbox implements Outbox {
  readonly #kept: KeptEvents
  readonly #isClosed: () => boolean

  constructor(kept: KeptEvents, isClosed: () => boolean) {
    this.#kept = kept
    this.#isClosed = isClosed
  }

  static nothing(): KeptEvents {
    return { newest: 0, newestToken: 0, events: new Map(), claims: new Map(), newestOfOrder: new Map() }
  }

  get size(): number {
    return this.#kept.events.size
  }

  /** The event of a write that is now durable. */
  add({ order, event, tenant, atMs }: OrderWrite): void {
    const sequence = ++this.#kept.newest
    this.#kept.events.set(sequence, {
      event: { sequence, subject: order.id, tenant, atMs, json: order.json, ...event },
      after: this.#kept.newestOfOrder.get(order.id),
      attempts: 0,
      state: { kind: 'fresh' },
    })
    this.#kept.newestOfOrder.set(order.id, sequence)
  }

  async claim({ limit, leaseMs, atMs }: ClaimAsk): Promise<ClaimVerdict> {
    if (this.#isClosed()) return { kind: 'unavailable' }
    const latestMs = atMs + LONGEST_WAIT_MS + SET_BACK_MS
    for (const [token, { endsAtMs }] of this.#kept.claims) {
      if (endsAtMs <= atMs || endsAtMs > latestMs) this.#handBack(token)
    }
    for (const kept of this.#inState('waiting')) {
      const isFar = kept.state.kind === 'waiting' && kept.state.dueAtMs > latestMs
      if (isFar) kept.state = { kind: 'waiting', dueAtMs: 0 }
    }
    for (let looked = 0; looked < MOST_LOOKED_AT; looked += limit) {
      const due = this.#due(limit, atMs)
      if (due.length === 0) break
      const token = ++this.#kept.newestToken
      for (const kept of due) {
        const dueAtMs = kept.state.kind === 'waiting' ? kept.state.dueAtMs : 0
        kept.state = { kind: 'claimed', token, dueAtMs }
      }
      for (const kept of due) this.#holdBack(kept, token, atMs)
      const events = this.#ofClaim(token).map(({ event, attempts }) => ({ ...event, attempts }))
      if (events.length === 0) continue
      this.#kept.claims.set(token, { endsAtMs: atMs + leaseMs })
      return { kind: 'claimed', token, events }
    }
    return { kind: 'nothing' }
  }

  async settle({ token, exceptions, keeps = [] }: Settlement): Promise<SettleVerdict> {
    if (this.#isClosed()) return 'unavailable'
    if (!this.#kept.claims.has(token)) return 'stale'
    const named = new Map(exceptions.map(exception => [exception.sequence, exception]))
    for (const kept of this.#ofClaim(token)) {
      const { sequence } = kept.event
      if (named.has(sequence) || !keeps.includes(sequence)) except(kept, named.get(sequence))
    }
    if (keeps.length === 0) this.#kept.claims.delete(token)
    return 'settled'
  }

  async findDead(
    { limit, after = 0 }: { readonly limit: number; readonly after: number | undefined },
    signal: AbortSignal,
  ): Promise<Lookup<readonly DeadEvent[]>> {
    return this.#find(signal, () =>
      this.#inState('dead')
        .filter(({ event }) => event.sequence > after)
        .slice(0, limit)
        .map(({ event: { json, traceparent, ...event }, attempts, state }) => {
          return { ...event, attempts, reason: state.kind === 'dead' ? state.reason : '' }
        }),
    )
  }

  async redrive(ids: readonly string[] | 'all', atMs: number): Promise<number | undefined> {
    if (this.#isClosed()) return undefined
    let redriven = 0
    for (const dead of this.#inState('dead')) {
      if (ids !== 'all' && !ids.includes(dead.event.id)) continue
      let kept: KeptEvent | undefined = dead
      while (kept !== undefined) {
        if (kept.state.kind === 'dead') {
          kept.attempts = 0
          kept.state = { kind: 'waiting', dueAtMs: atMs }
          redriven++
        }
        kept = this.#kept.events.get(kept.after ?? 0)
      }
    }
    return redriven
  }

  async measure(signal: AbortSignal): Promise<Lookup<Backlog>> {
    return this.#find(signal, () => {
      const pending = this.#inState('fresh', 'claimed', 'waiting')
      return {
        pending: pending.length,
        dead: this.#inState('dead').length,
        oldestAtMs: pending[0]?.event.atMs,
      }
    })
  }

  async purgeDelivered(ask: PurgeAsk): Promise<Purged | undefined> {
    if (this.#isClosed()) return undefined
    const seen = this.#inState('claimed', 'waiting', 'dead', 'delivered').map(kept => {
      const { sequence, atMs } = kept.event
      return { place: sequence, atMs, drop: () => this.#kept.events.delete(sequence), kept }
    })
    return purged(ask, seen, ({ kept }) => kept.state.kind === 'delivered')
  }

  /** What failed before by its due time, at most half of the claim while there is something fresh. */
  #due(limit: number, atMs: number): KeptEvent[] {
    const fresh = this.#inState('fresh')
    const again = this.#inState('waiting')
      .map(kept => ({ kept, dueAtMs: kept.state.kind === 'waiting' ? kept.state.dueAtMs : 0 }))
      .filter(({ dueAtMs }) => dueAtMs <= atMs)
      .sort((one, other) => one.dueAtMs - other.dueAtMs)
      .slice(0, Math.max(limit - fresh.length, Math.floor(limit / 2), 1))
      .map(({ kept }) => kept)
    return [...again, ...fresh.slice(0, limit - again.length)].sort(bySequence)
  }

  #holdBack(kept: KeptEvent, token: number, atMs: number): void {
    const before = this.#kept.events.get(kept.after ?? 0)?.state
    if (before === undefined || before.kind === 'delivered') return
    if (before.kind === 'claimed' && before.token === token) return
    if (before.kind === 'dead') {
      kept.state = { kind: 'dead', reason: 'an earlier event of its order is parked' }
    } else {
      const dueAtMs = before.kind === 'waiting' ? before.dueAtMs : 0
      kept.state = { kind: 'waiting', dueAtMs: Math.max(dueAtMs, atMs + BEHIND_MS) }
    }
  }

  #handBack(token: number): void {
    this.#kept.claims.delete(token)
    for (const kept of this.#ofClaim(token)) {
      if (kept.state.kind === 'claimed') kept.state = { kind: 'waiting', dueAtMs: kept.state.dueAtMs }
    }
  }

  #ofClaim(token: number): KeptEvent[] {
    return this.#inState('claimed').filter(({ state }) => state.kind === 'claimed' && state.token === token)
  }

  #inState(...kinds: readonly EventState['kind'][]): KeptEvent[] {
    return [...this.#kept.events.values()].filter(({ state }) => kinds.includes(state.kind))
  }

  #find<Found>(signal: AbortSignal, look: () => Found): Lookup<Found> {
    if (signal.aborted) return { kind: 'withdrawn' }
    return this.#isClosed() ? { kind: 'unavailable' } : { kind: 'found', value: look() }
  }
}

interface Purgeable {
  readonly place: number
  readonly atMs: number
  readonly drop: () => void
}

/** One step through rows in the order of their places. */
export function purged<Row extends Purgeable>(
  { atMs, madeBeforeMs, limit, after }: PurgeAsk,
  rows: readonly Row[],
  mayGo: (row: Row) => boolean = () => true,
): Purged {
  const seen = rows.filter(({ place }) => place > after).slice(0, limit)
  const old = seen.filter(row => row.atMs < madeBeforeMs && mayGo(row))
  for (const { drop } of old) drop()
  const last = seen[limit - 1]
  const isOver = last === undefined || (last.atMs >= madeBeforeMs && last.atMs <= atMs)
  return { deleted: old.length, next: isOver ? undefined : last.place }
}

function except(kept: KeptEvent, exception: SettleException | undefined): void {
  if (exception === undefined) kept.state = { kind: 'delivered' }
  else {
    const { attempts, dueAtMs, reason } = exception
    kept.attempts = attempts
    kept.state = dueAtMs === undefined ? { kind: 'dead', reason } : { kind: 'waiting', dueAtMs }
  }
}

function bySequence(one: KeptEvent, other: KeptEvent): number {
  return one.event.sequence - other.event.sequence
}
