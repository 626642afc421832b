import { expect, it } from 'vitest'
import {
  dead,
  eventIds,
  idsOf,
  LEASE_MS,
  type OutboxUnderTest,
  retry,
} from '../../contracts/outbox.contract.ts'
import { cancelWrite, never } from '../../support/order-write.ts'

/** Longer than an event waits that was found behind another one of its order. */
const BEHIND_MS = 200

/** Per order in order, whatever becomes of the events before. */
export function orderContract(tested: OutboxUnderTest): void {
  it('puts events of one order into one claim, in their order', async () => {
    const create = await tested.create()
    const other = await tested.create()
    const cancel = await tested.cancel(create)
    expect(await tested.claimIds()).toEqual(eventIds(create, other, cancel))
  })

  it('claims nothing behind what is claimed elsewhere, and others meanwhile', async () => {
    const create = await tested.create()
    const first = await tested.claim()
    const cancel = await tested.cancel(create)
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    const other = await tested.create()
    tested.nowMs += BEHIND_MS
    expect(await tested.claimIds()).toEqual(eventIds(other))
    await tested.settle(first.token)
    tested.nowMs += BEHIND_MS
    expect(await tested.claimIds()).toEqual(eventIds(cancel))
  })

  it('keeps a third event behind the second', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    const held = await tested.claim()
    expect(idsOf(held)).toEqual(eventIds(create, cancel))
    const [, second] = held.events
    if (second) await tested.settle(held.token, retry(second, tested.nowMs + 500))
    const third = cancelWrite(cancel, { key: 'third' })
    expect(await tested.store.commit(third, never())).toEqual({ kind: 'created' })
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    tested.nowMs += 500
    expect(await tested.claimIds()).toEqual(eventIds(cancel, third))
  })

  it('claims nothing behind what waits, and both together when that is due', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    const first = await tested.claim(1)
    await tested.settle(first.token, ...first.events.map(event => retry(event, tested.nowMs + 700)))
    const dueAtMs = tested.nowMs + 700
    for (; tested.nowMs < dueAtMs; tested.nowMs += 50) expect(await tested.ask()).toEqual({ kind: 'nothing' })
    expect((await tested.measure()).pending).toBe(2)
    expect(await tested.claimIds()).toEqual(eventIds(create, cancel))
  })

  it('holds a follower again after each retry of its predecessor', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    for (let attempts = 0; attempts < 4; attempts++) {
      const { token, events } = await tested.claim(1)
      expect(events.map(event => [event.id, event.attempts])).toEqual([[create.event.id, attempts]])
      expect(await tested.ask()).toEqual({ kind: 'nothing' })
      await tested.settle(token, ...events.map(event => retry(event, tested.nowMs + 2 * BEHIND_MS)))
      tested.nowMs += BEHIND_MS
      expect(await tested.ask()).toEqual({ kind: 'nothing' })
      tested.nowMs += BEHIND_MS
    }
    const { token } = await tested.claim(1)
    await tested.settle(token)
    tested.nowMs += BEHIND_MS
    expect(await tested.claimIds()).toEqual(eventIds(cancel))
  })

  it('waits for both when one claim with both of them failed at the first', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    const { token, events } = await tested.claim()
    const [one, two] = events
    if (!one || !two) throw new Error('two were made')
    // The follower is due before the one that it must follow.
    await tested.settle(token, retry(one, tested.nowMs + 500), { ...retry(two, tested.nowMs), attempts: 0 })
    tested.nowMs += 499
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    tested.nowMs += 1
    const again = await tested.claim()
    expect(idsOf(again).slice(0, 1)).toEqual(eventIds(create))
    await tested.settle(again.token)
    tested.nowMs += BEHIND_MS
    const rest = await tested.claimIds()
    expect([...idsOf(again).slice(1), ...rest]).toEqual(eventIds(cancel))
  })

  it('lets an event die behind a dead one', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    const first = await tested.claim(1)
    await tested.settle(first.token, ...first.events.map(dead))
    const other = await tested.create()
    expect(await tested.claimIds()).toEqual(eventIds(other))
    expect(await tested.deadIds()).toEqual(eventIds(create, cancel))
    expect(await tested.measure()).toEqual({ pending: 1, dead: 2, oldestAtMs: other.atMs })
  })

  it('keeps the order when the lease of the first is over and parts of it are handed on', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    await tested.claim()
    tested.nowMs += LEASE_MS
    const first = await tested.claim(1)
    expect(idsOf(first)).toEqual(eventIds(create))
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    await tested.settle(first.token)
    tested.nowMs += BEHIND_MS
    expect(await tested.claimIds()).toEqual(eventIds(cancel))
  })

  it('never gives again what was delivered out of the middle of what another claim still has', async () => {
    const create = await tested.create({ atMs: 100 })
    const first = await tested.claim()
    const cancel = await tested.cancel(create)
    const slow = await tested.create({ atMs: 300 })
    // The cancel is not in it: its create is claimed.
    const second = await tested.claim(100, 100 * LEASE_MS)
    expect(idsOf(second)).toEqual(eventIds(slow))
    await tested.settle(first.token)
    tested.nowMs += BEHIND_MS
    const third = await tested.claim()
    expect(idsOf(third)).toEqual(eventIds(cancel))
    await tested.settle(third.token)
    expect(await tested.measure()).toEqual({ pending: 1, dead: 0, oldestAtMs: slow.atMs })
    await tested.reopen()
    expect(await tested.measure()).toEqual({ pending: 1, dead: 0, oldestAtMs: slow.atMs })
    tested.nowMs += 100 * LEASE_MS
    const last = await tested.claim()
    expect(idsOf(last)).toEqual(eventIds(slow))
    await tested.settle(last.token)
    expect(await tested.measure()).toEqual({ pending: 0, dead: 0, oldestAtMs: undefined })
  })

  it('goes on behind what was delivered and purged', async () => {
    const create = await tested.create()
    const { token } = await tested.claim()
    await tested.settle(token)
    expect(await tested.purge()).toBe(1)
    const cancel = await tested.cancel(create)
    expect(await tested.claimIds()).toEqual(eventIds(cancel))
  })
}
