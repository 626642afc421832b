import { expect } from 'vitest'
import {
  LONGEST_WAIT_MS,
  type OrderWrite,
  type OutboxEvent,
  SET_BACK_MS,
  type SettleException,
  type Store,
} from '../../src/store/index.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { cancelWrite, never, orderWrite } from '../support/order-write.ts'
import type { SqlitePlace } from '../support/sqlite-place.ts'

interface HeldClaim {
  /** Of the embedded store, and of the model. */
  readonly tokens: readonly [number, number]
  readonly events: readonly OutboxEvent[]
  readonly endsAtMs: number
}

/** What becomes of one event in a settlement. */
export interface Fate {
  readonly kind: 'delivered' | 'retried' | 'dead' | 'kept'
  readonly delayMs: number
}

type Told = Record<string, unknown>

/**
 * The embedded store and the model side by side: both are asked the same and must say the same. Beside that an observer
 * that knows neither keeps to the sentences of the port: nothing lost, nothing claimed twice at once, nothing again that
 * was delivered, per order in order, counted rightly.
 */
export class OutboxWorld {
  readonly seen = new Set<string>()
  nowMs = 1_000_000_000
  readonly #place: SqlitePlace
  #sqlite: Store
  #memory = new MemoryStore()
  readonly #creates: OrderWrite[] = []
  readonly #cancelled = new Set<OrderWrite>()
  /** Ids of the events of each order, in the order of their making. */
  readonly #made = new Map<string, string[]>()
  readonly #delivered = new Set<string>()
  #claims: HeldClaim[] = []
  readonly #spent: HeldClaim[] = []
  /** Where the next purge goes on. */
  #purged = { events: 0, keys: 0 }

  constructor(place: SqlitePlace, sqlite: Store) {
    this.#place = place
    this.#sqlite = sqlite
  }

  async create(): Promise<void> {
    const write = orderWrite({ atMs: this.nowMs })
    this.#creates.push(write)
    await this.#commit(write)
  }

  async cancel(pick: number): Promise<void> {
    const open = this.#creates.filter(write => !this.#cancelled.has(write))
    const create = open[pick % Math.max(1, open.length)]
    if (create === undefined) return
    this.#cancelled.add(create)
    await this.#commit({ ...cancelWrite(create), atMs: this.nowMs })
  }

  async claim(limit: number, leaseMs: number): Promise<number> {
    const ask = { limit, leaseMs, atMs: this.nowMs }
    const [told, model] = await this.#both(store => store.outbox.claim(ask))
    expect(withoutToken(told)).toEqual(withoutToken(model))
    this.seen.add(`claim ${told.kind}`)
    // A lease that is over ends with the next claim, whatever that finds.
    for (const claim of this.#claims) {
      if (claim.endsAtMs <= this.nowMs) this.#spend(claim, 'lapsed')
      else if (claim.endsAtMs > this.nowMs + LONGEST_WAIT_MS + SET_BACK_MS)
        this.#spend(claim, 'lapsed by a clock set back')
    }
    if (told.kind !== 'claimed' || model.kind !== 'claimed') return 0
    this.#judge(told.events, limit)
    const tokens = [told.token, model.token] as const
    this.#claims.push({ tokens, events: told.events, endsAtMs: this.nowMs + leaseMs })
    return told.events.length
  }

  async settle(pick: number, fates: readonly Fate[]): Promise<void> {
    const claim = this.#claims[pick % Math.max(1, this.#claims.length)]
    if (claim === undefined) return
    const exceptions = this.#exceptions(claim.events, fates)
    const kept = exceptions.filter(({ reason }) => reason === 'fate kept').map(({ sequence }) => sequence)
    const failed = exceptions.filter(({ sequence }) => !kept.includes(sequence))
    expect(await this.#settle(claim, failed, kept)).toBe('settled')
    const named = new Set(exceptions.map(({ sequence }) => sequence))
    for (const { id, sequence } of claim.events) if (!named.has(sequence)) this.#delivered.add(id)
    this.#spend(claim, kept.length > 0 ? 'settled in part' : 'settled')
    if (kept.length === 0) return
    const events = claim.events.filter(({ sequence }) => kept.includes(sequence))
    this.#spent.pop()
    this.#claims.push({ ...claim, events })
  }

  async settleStale(pick: number): Promise<void> {
    const claim = this.#spent[pick % Math.max(1, this.#spent.length)]
    if (claim === undefined) return
    const exceptions = this.#exceptions(claim.events, [{ kind: 'dead', delayMs: 0 }])
    expect(await this.#settle(claim, pick % 2 ? exceptions : [])).toBe('stale')
    this.seen.add('stale')
  }

  async redrive(all: boolean): Promise<void> {
    const dead = await this.#dead()
    const ids = all ? 'all' : dead.filter((_, n) => n % 2 === 0)
    const [told, model] = await this.#both(store => store.outbox.redrive(ids, this.nowMs))
    expect(told).toBe(model)
    // Those before them in their orders come along.
    expect(told).toBeGreaterThanOrEqual(all ? dead.length : ids.length)
    if (told) this.seen.add(`redrive ${all ? 'all' : 'some'}`)
  }

  async purge(ageMs: number, limit: number): Promise<void> {
    const ask = { atMs: this.nowMs, madeBeforeMs: this.nowMs - ageMs, limit }
    const events = await this.#both(store =>
      store.outbox.purgeDelivered({ ...ask, after: this.#purged.events }),
    )
    const keys = await this.#both(store => store.purgeKeys({ ...ask, after: this.#purged.keys }))
    for (const [told, model] of [events, keys]) expect(told).toEqual(model)
    if (events[0]?.deleted) this.seen.add('purge')
    this.#purged = { events: events[0]?.next ?? 0, keys: keys[0]?.next ?? 0 }
    expect(this.#place.rows()).toEqual({
      keys: this.#memory.keys,
      orders: this.#memory.orders,
      events: this.#memory.events,
    })
  }

  async reopen(): Promise<void> {
    await this.#sqlite.close()
    this.#sqlite = await this.#place.open({ synchronous: 'OFF' })
    this.#memory = new MemoryStore(this.#memory)
  }

  /** Holds after every step. */
  async check(): Promise<void> {
    const [told, model] = await this.#both(store => store.outbox.measure(never()))
    expect(told).toEqual(model)
    const dead = await this.#dead()
    const made = [...this.#made.values()].flat()
    expect(told).toMatchObject({
      value: { dead: dead.length, pending: made.length - this.#delivered.size - dead.length },
    })
    expect(dead.filter(id => this.#delivered.has(id))).toEqual([])
  }

  /** Everything that was ever made is delivered in the end. */
  async drain(): Promise<void> {
    for (let idle = 0; idle < 3; ) {
      this.nowMs += LONGEST_WAIT_MS
      await this.redrive(true)
      idle = (await this.claim(5, 1_000)) === 0 ? idle + 1 : 0
      while (this.#claims.length > 0) await this.settle(0, [])
    }
    await this.check()
    expect(this.#delivered.size).toBe([...this.#made.values()].flat().length)
    const db = this.#place.connect()
    const left = ['outbox_claims', 'outbox_held'].map(t => db.prepare(`SELECT * FROM ${t}`).all())
    db.close()
    // What is delivered leaves nothing behind but its event.
    expect(left).toEqual([[], []])
  }

  async #commit(write: OrderWrite): Promise<void> {
    const ids = this.#made.get(write.order.id) ?? []
    this.#made.set(write.order.id, [...ids, write.event.id])
    const verdicts = await this.#both(store => store.commit(write, never()))
    expect(verdicts).toEqual(Array(2).fill({ kind: 'created' }))
  }

  #judge(events: readonly OutboxEvent[], limit: number): void {
    expect(events.length).toBeGreaterThan(0)
    expect(events.length).toBeLessThanOrEqual(limit)
    expect(events).toEqual(events.toSorted((one, other) => one.sequence - other.sequence))
    const held = new Set(this.#claims.flatMap(claim => claim.events.map(({ id }) => id)))
    const here = new Set<string>()
    for (const { id, subject } of events) {
      expect({ held: held.has(id), delivered: this.#delivered.has(id) }).toEqual({
        held: false,
        delivered: false,
      })
      const ids = this.#made.get(subject) ?? []
      const before = ids.slice(0, ids.indexOf(id))
      expect(before.filter(earlier => !this.#delivered.has(earlier) && !here.has(earlier))).toEqual([])
      if (before.length > 0) this.seen.add('follower')
      here.add(id)
    }
  }

  /** As the relay does it: behind an event that was not delivered, no other of its order is. */
  #exceptions(events: readonly OutboxEvent[], fates: readonly Fate[]): SettleException[] {
    const before = new Map<string, Fate['kind']>()
    return events.flatMap(({ sequence, subject, attempts }, n) => {
      const drawn = fates[n % Math.max(1, fates.length)]
      const earlier = before.get(subject)
      const fate = earlier === 'kept' ? { kind: earlier, delayMs: 0 } : drawn
      const isOver = fate === undefined || fate.kind === 'delivered'
      if (isOver && earlier === undefined) return []
      before.set(subject, fate?.kind ?? 'retried')
      this.seen.add(fate?.kind ?? '')
      const dueAtMs = fate?.kind === 'dead' ? undefined : this.nowMs + (fate?.delayMs ?? 0)
      return { sequence, attempts: attempts + 1, dueAtMs, reason: `fate ${fate?.kind}` }
    })
  }

  async #settle(
    { tokens }: HeldClaim,
    exceptions: readonly SettleException[],
    keeps: readonly number[] = [],
  ): Promise<string> {
    const [told, model] = await this.#both((store, n) =>
      store.outbox.settle({ token: tokens[n], atMs: this.nowMs, exceptions, keeps }),
    )
    expect(told).toBe(model)
    return told
  }

  #spend(claim: HeldClaim, how: string): void {
    this.#claims = this.#claims.filter(other => other !== claim)
    this.#spent.push(claim)
    this.seen.add(how)
  }

  async #dead(): Promise<string[]> {
    const page = { limit: 1_000, after: undefined }
    const [told, model] = await this.#both(store => store.outbox.findDead(page, never()))
    expect(told).toEqual(model)
    return told.kind === 'found' ? told.value.map(({ id }) => id) : []
  }

  #both<Answer>(ask: (store: Store, n: 0 | 1) => Promise<Answer>): Promise<[Answer, Answer]> {
    return Promise.all([ask(this.#sqlite, 0), ask(this.#memory, 1)])
  }
}

function withoutToken(verdict: Told): Told {
  const { token: _, ...rest } = verdict
  return rest
}
