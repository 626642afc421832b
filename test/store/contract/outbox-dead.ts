import { expect, it } from 'vitest'
import { dead, eventIds, LEASE_MS, type OutboxUnderTest } from '../../contracts/outbox.contract.ts'
import { never } from '../../support/order-write.ts'

/** What was given up on: listed, and brought back. */
export function deadContract(tested: OutboxUnderTest): void {
  it('lists what is dead in the order of its making, page by page, and never claims it', async () => {
    const writes = await tested.createMany(5)
    const events = await tested.kill()
    tested.nowMs += 10 * LEASE_MS
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    const { outbox } = tested.store
    const page = await outbox.findDead({ limit: 2, after: undefined }, never())
    expect(page).toEqual({
      kind: 'found',
      value: events.slice(0, 2).map(({ json, traceparent, ...event }) => {
        return { ...event, attempts: 1, reason: 'it was refused' }
      }),
    })
    const after = events[1]?.sequence
    const rest = await outbox.findDead({ limit: 10, after }, never())
    expect(rest.kind === 'found' && rest.value.map(({ id }) => id)).toEqual(eventIds(...writes.slice(2)))
    const end = await outbox.findDead({ limit: 10, after: events[4]?.sequence }, never())
    expect(end).toEqual({ kind: 'found', value: [] })
    expect(await tested.measure()).toEqual({ pending: 0, dead: 5, oldestAtMs: undefined })
  })

  it('lists nothing that waits, is claimed or delivered', async () => {
    await tested.createMany(3)
    const { token, events } = await tested.claim(2)
    const [one] = events
    if (one) await tested.settle(token, { ...dead(one), dueAtMs: tested.nowMs + 1 })
    expect(await tested.deadIds()).toEqual([])
  })

  it('redrives those that are named, from the given moment on, with all attempts before them', async () => {
    const [one, , three] = await tested.createMany(3)
    await tested.kill()
    const ids = [one?.event.id ?? '', three?.event.id ?? '', 'of nothing']
    expect(await tested.store.outbox.redrive(ids, tested.nowMs + 100)).toBe(2)
    expect(await tested.measure()).toEqual({ pending: 2, dead: 1, oldestAtMs: one?.atMs })
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    tested.nowMs += 100
    const { token, events } = await tested.claim()
    expect(events.map(({ id, attempts }) => [id, attempts])).toEqual([
      [one?.event.id, 0],
      [three?.event.id, 0],
    ])
    await tested.settle(token)
    expect(await tested.store.outbox.redrive(ids, tested.nowMs)).toBe(0)
    expect(await tested.measure()).toEqual({ pending: 0, dead: 1, oldestAtMs: undefined })
  })

  it('redrives all, in order, and nothing but what is dead', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    const other = await tested.create()
    await tested.kill()
    await tested.create()
    const held = await tested.claim()
    const fresh = await tested.create()
    expect(await tested.store.outbox.redrive('all', tested.nowMs)).toBe(3)
    expect(await tested.store.outbox.redrive('all', tested.nowMs)).toBe(0)
    expect(await tested.deadIds()).toEqual([])
    const { events } = await tested.claim()
    expect(events.map(({ id }) => id)).toEqual(eventIds(create, cancel, other, fresh))
    expect(events.map(({ attempts }) => attempts)).toEqual([0, 0, 0, 0])
    expect(await tested.settle(held.token)).toBe('settled')
  })

  it('redrives nothing that is claimed, waiting or delivered', async () => {
    const writes = await tested.createMany(4)
    const first = await tested.claim(2)
    const [one] = first.events
    if (one) await tested.settle(first.token, { ...dead(one), dueAtMs: tested.nowMs + 500 })
    await tested.claim(1)
    expect(await tested.store.outbox.redrive(eventIds(...writes), tested.nowMs)).toBe(0)
    expect(await tested.store.outbox.redrive([], tested.nowMs)).toBe(0)
    expect(await tested.claimIds()).toEqual(eventIds(...writes.slice(3)))
  })

  it('redrives what is dead before a follower in its order, and nothing else', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    await tested.create()
    await tested.kill()
    expect(await tested.store.outbox.redrive(eventIds(cancel), tested.nowMs)).toBe(2)
    expect(await tested.measure()).toMatchObject({ pending: 2, dead: 1 })
    expect(await tested.claimIds()).toEqual(eventIds(create, cancel))
  })

  it('redrives more than fits in one step', async () => {
    const writes = await tested.createMany(1_201)
    const { token, events } = await tested.claim(2_000)
    await tested.settle(token, ...events.map(dead))
    const last = eventIds(...writes.slice(-1))
    expect(await tested.store.outbox.redrive(last, tested.nowMs)).toBe(1)
    expect(await tested.store.outbox.redrive('all', tested.nowMs)).toBe(1_200)
    expect(await tested.measure()).toMatchObject({ pending: 1_201, dead: 0 })
  })

  it('redrives a follower when its predecessor is delivered at last', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    await tested.kill()
    await tested.store.outbox.redrive(eventIds(create), tested.nowMs)
    const { token } = await tested.claim()
    await tested.settle(token)
    expect(await tested.deadIds()).toEqual(eventIds(cancel))
    await tested.store.outbox.redrive(eventIds(cancel), tested.nowMs)
    expect(await tested.claimIds()).toEqual(eventIds(cancel))
  })

  it('redrives what is dead before one that waits', async () => {
    const create = await tested.create()
    const second = await tested.cancel(create)
    await tested.kill()
    // The first dies once more while the second waits.
    await tested.store.outbox.redrive(eventIds(second), tested.nowMs)
    const { token, events } = await tested.claim(1)
    expect(await tested.settle(token, ...events.map(dead))).toBe('settled')
    expect(await tested.measure()).toMatchObject({ pending: 1, dead: 1 })
    expect(await tested.store.outbox.redrive('all', tested.nowMs)).toBe(1)
    expect(await tested.claimIds()).toEqual(eventIds(create, second))
  })
}
