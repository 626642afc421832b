import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type {
  Backlog,
  ClaimVerdict,
  OrderWrite,
  OutboxEvent,
  SettleException,
  Store,
} from '../../src/store/index.ts'
import { claimsContract } from '../store/contract/outbox-claims.ts'
import { deadContract } from '../store/contract/outbox-dead.ts'
import { orderContract } from '../store/contract/outbox-order.ts'
import { purgeContract } from '../store/contract/outbox-purge.ts'
import { cancelWrite, never, orderWrite, type WriteChoices } from '../support/order-write.ts'
import type { StoreHarness } from './store.contract.ts'

export const LEASE_MS = 1_000
const ALL_MS = Number.MAX_SAFE_INTEGER

/** What every driver of the store promises whoever delivers events; each part has a file of its own. */
export function outboxContract(name: string, makeHarness: () => StoreHarness | Promise<StoreHarness>): void {
  describe(`outbox contract: ${name}`, () => {
    const tested = new OutboxUnderTest()

    beforeEach(async () => {
      tested.harness = await makeHarness()
      tested.nowMs = 1_000_000_000
      await tested.open()
    })
    afterEach(async () => {
      await tested.store.close()
      await tested.harness.dispose()
    })

    describe('claims', () => claimsContract(tested))
    describe('order', () => orderContract(tested))
    describe('dead events', () => deadContract(tested))
    describe('purges', () => purgeContract(tested))

    it('is unavailable once the store is closed', async () => {
      await tested.create()
      await tested.store.close()
      const { outbox } = tested.store
      expect(await outbox.claim({ limit: 1, leaseMs: 1, atMs: 0 })).toEqual({ kind: 'unavailable' })
      expect(await outbox.settle({ token: 1, atMs: 0, exceptions: [] })).toBe('unavailable')
      expect(await outbox.redrive('all', 0)).toBeUndefined()
      const purge = { atMs: 0, madeBeforeMs: 0, limit: 1, after: 0 }
      expect(await outbox.purgeDelivered(purge)).toBeUndefined()
      expect(await tested.store.purgeKeys(purge)).toBeUndefined()
      expect(await outbox.measure(never())).toEqual({ kind: 'unavailable' })
      expect(await outbox.findDead({ limit: 1, after: undefined }, never())).toEqual({ kind: 'unavailable' })
    })

    it('looks nothing up for a caller that has left', async () => {
      const { outbox } = tested.store
      expect(await outbox.measure(AbortSignal.abort())).toEqual({ kind: 'withdrawn' })
      expect(await outbox.findDead({ limit: 1, after: undefined }, AbortSignal.abort())).toEqual({
        kind: 'withdrawn',
      })
    })
  })
}

/** The harness of one test, the store that it opened last, its time, and short words for what every part does. */
export class OutboxUnderTest {
  harness = {} as StoreHarness
  store = {} as Store
  nowMs = 0

  async open(): Promise<void> {
    this.store = await this.harness.open()
  }

  async reopen(): Promise<void> {
    await this.store.close()
    await this.open()
  }

  async create(choices: WriteChoices = {}): Promise<OrderWrite> {
    const write = orderWrite(choices)
    expect(await this.store.commit(write, never())).toEqual({ kind: 'created' })
    return write
  }

  async createMany(count: number): Promise<OrderWrite[]> {
    const writes: OrderWrite[] = []
    for (let n = 0; n < count; n++) writes.push(await this.create())
    return writes
  }

  async cancel(write: OrderWrite): Promise<OrderWrite> {
    const cancel = cancelWrite(write)
    expect(await this.store.commit(cancel, never())).toEqual({ kind: 'created' })
    return cancel
  }

  ask(limit = 100, leaseMs = LEASE_MS): Promise<ClaimVerdict> {
    return this.store.outbox.claim({ limit, leaseMs, atMs: this.nowMs })
  }

  async claim(limit = 100, leaseMs = LEASE_MS): Promise<{ token: number; events: readonly OutboxEvent[] }> {
    const verdict = await this.ask(limit, leaseMs)
    if (verdict.kind !== 'claimed') throw new Error(`asked for a claim and got ${verdict.kind}`)
    return verdict
  }

  /** The ids of the events of a new claim; none when nothing is due. */
  async claimIds(limit = 100): Promise<string[]> {
    const verdict = await this.ask(limit)
    if (verdict.kind === 'unavailable') throw new Error('unavailable')
    return verdict.kind === 'claimed' ? idsOf(verdict) : []
  }

  settle(token: number, ...exceptions: readonly SettleException[]): Promise<string> {
    return this.store.outbox.settle({ token, atMs: this.nowMs, exceptions })
  }

  /** Claims everything that is due, and all of it dies. */
  async kill(): Promise<readonly OutboxEvent[]> {
    const { token, events } = await this.claim()
    expect(await this.settle(token, ...events.map(dead))).toBe('settled')
    return events
  }

  /** Deletes whatever is delivered; how many. */
  async purge(): Promise<number | undefined> {
    const everything = { atMs: ALL_MS, madeBeforeMs: ALL_MS, limit: 100, after: 0 }
    return (await this.store.outbox.purgeDelivered(everything))?.deleted
  }

  async deadIds(): Promise<string[]> {
    const found = await this.store.outbox.findDead({ limit: 1_000, after: undefined }, never())
    return found.kind === 'found' ? found.value.map(({ id }) => id) : [found.kind]
  }

  async measure(): Promise<Backlog> {
    const found = await this.store.outbox.measure(never())
    if (found.kind !== 'found') throw new Error(found.kind)
    return found.value
  }
}

export function idsOf({ events }: { readonly events: readonly OutboxEvent[] }): string[] {
  return events.map(({ id }) => id)
}

export function eventIds(...writes: readonly OrderWrite[]): string[] {
  return writes.map(({ event }) => event.id)
}

/** Failed once more, and due again at that moment. */
export function retry({ sequence, attempts }: OutboxEvent, dueAtMs: number): SettleException {
  return { sequence, attempts: attempts + 1, dueAtMs, reason: 'it failed' }
}

export function dead({ sequence, attempts }: OutboxEvent): SettleException {
  return { sequence, attempts: attempts + 1, dueAtMs: undefined, reason: 'it was refused' }
}
