import type {
  Backlog,
  ClaimAsk,
  ClaimVerdict,
  DeadEvent,
  Lookup,
  Outbox,
  OutboxEvent,
  Settlement,
  SettleVerdict,
} from '../../src/store/index.ts'

interface Row {
  readonly event: OutboxEvent
  state: 'waiting' | 'delivered' | 'dead'
  attempts: number
  dueAtMs: number
  /** Under which it is claimed; 0: none. */
  token: number
  leaseEndsAtMs: number
  reason: string
}

/** An outbox in memory that keeps the port's promises in the plainest way, may be told to fail, and notes each call. */
export class FakeOutbox implements Outbox {
  readonly rows: Row[] = []
  readonly claims: { readonly atMs: number; readonly limit: number; readonly size: number }[] = []
  readonly settlements: (Settlement & { readonly verdict: SettleVerdict })[] = []
  claimable = true
  settleable = true
  /** When set, what a claim has found is told only after it. */
  gate: Promise<void> | undefined
  /** Events given out and not yet settled. */
  claimed = 0
  mostClaimed = 0
  #token = 0
  readonly #taken = new Map<number, readonly Row[]>()
  /** Everything before it is through. */
  #head = 0

  /** One more event of `subject`, made at `atMs`. */
  add(subject: string, atMs = 0): OutboxEvent {
    const sequence = this.rows.length + 1
    const event: OutboxEvent = {
      sequence,
      id: `event-${sequence}`,
      type: 'order.created',
      subject,
      tenant: 'tenant-1',
      traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      atMs,
      json: '{}',
      attempts: 0,
    }
    this.rows.push({
      event,
      state: 'waiting',
      attempts: 0,
      dueAtMs: 0,
      token: 0,
      leaseEndsAtMs: 0,
      reason: '',
    })
    return event
  }

  row(event: OutboxEvent): Row {
    const row = this.rows[event.sequence - 1]
    if (row === undefined) throw new Error(`no event ${event.sequence}`)
    return row
  }

  inState(state: Row['state']): OutboxEvent[] {
    return this.rows.filter(row => row.state === state).map(row => row.event)
  }

  async claim({ limit, leaseMs, atMs }: ClaimAsk): Promise<ClaimVerdict> {
    const taken = this.claimable ? this.#take(limit, atMs) : []
    const unavailable = !this.claimable
    this.claims.push({ atMs, limit, size: taken.length })
    const token = taken.length === 0 ? 0 : ++this.#token
    if (token !== 0) this.#taken.set(token, taken)
    this.claimed += taken.filter(row => row.token === 0).length
    this.mostClaimed = Math.max(this.mostClaimed, this.claimed)
    const events = taken.map(row => {
      row.token = token
      row.leaseEndsAtMs = atMs + leaseMs
      return { ...row.event, attempts: row.attempts }
    })
    await this.gate
    if (unavailable) return { kind: 'unavailable' }
    return events.length === 0 ? { kind: 'nothing' } : { kind: 'claimed', token, events }
  }

  async settle(settlement: Settlement): Promise<SettleVerdict> {
    const verdict = this.settleable ? this.#settled(settlement) : 'unavailable'
    this.settlements.push({ ...settlement, verdict })
    return verdict
  }

  async findDead(): Promise<Lookup<readonly DeadEvent[]>> {
    return { kind: 'unavailable' }
  }

  async redrive(): Promise<undefined> {}

  async purgeDelivered(): Promise<undefined> {}

  async measure(_signal: AbortSignal): Promise<Lookup<Backlog>> {
    return { kind: 'unavailable' }
  }

  #take(limit: number, atMs: number): Row[] {
    while (this.rows[this.#head]?.state === 'delivered') this.#head++
    const taken: Row[] = []
    // Orders with an event that is neither through nor taken just now.
    const blocked = new Set<string>()
    const dead = new Set<string>()
    for (let index = this.#head; index < this.rows.length && taken.length < limit; index++) {
      const row = this.rows[index] as Row
      const { subject } = row.event
      if (row.state === 'delivered') continue
      if (row.state === 'dead') dead.add(subject)
      // Behind a dead one it is dead itself.
      else if (dead.has(subject)) row.state = 'dead'
      const free = row.token === 0 ? row.dueAtMs <= atMs : row.leaseEndsAtMs <= atMs
      if (row.state === 'waiting' && free && !blocked.has(subject)) taken.push(row)
      else blocked.add(subject)
    }
    return taken
  }

  #settled({ token, exceptions, keeps = [] }: Settlement): SettleVerdict {
    const held = (this.#taken.get(token) ?? []).filter(row => row.token === token)
    if (held.length === 0) return 'stale'
    const mine = held.filter(({ event }) => !keeps.includes(event.sequence))
    if (keeps.length === 0) this.#taken.delete(token)
    this.claimed -= mine.length
    const bySequence = new Map(exceptions.map(exception => [exception.sequence, exception]))
    for (const row of mine) {
      row.token = 0
      const exception = bySequence.get(row.event.sequence)
      if (exception === undefined) {
        row.state = 'delivered'
        continue
      }
      const { attempts, dueAtMs, reason } = exception
      Object.assign(row, { attempts, reason })
      if (dueAtMs === undefined) row.state = 'dead'
      else row.dueAtMs = dueAtMs
    }
    return 'settled'
  }
}
