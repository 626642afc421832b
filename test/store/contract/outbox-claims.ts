import { expect, it } from 'vitest'
import { LONGEST_WAIT_MS, SET_BACK_MS } from '../../../src/store/index.ts'
import { eventIds, idsOf, LEASE_MS, type OutboxUnderTest, retry } from '../../contracts/outbox.contract.ts'
import { cancelWrite, never, orderWrite } from '../../support/order-write.ts'

/** Whose events are: claims, leases, tokens, retries. */
export function claimsContract(tested: OutboxUnderTest): void {
  it('gives each event as it was made, the oldest first', async () => {
    const create = await tested.create({ json: '{"text":"naïve \\u0000 😀","n":1.50}', tenant: 'tenant-2' })
    const other = await tested.create()
    const { events } = await tested.claim()
    expect(events).toEqual(
      [create, other].map(({ event, order, tenant, atMs }) => ({
        sequence: expect.any(Number),
        id: event.id,
        type: 'order.created',
        subject: order.id,
        tenant,
        traceparent: event.traceparent,
        atMs,
        json: order.json,
        attempts: 0,
      })),
    )
    expect(events[1]?.sequence).toBeGreaterThan(events[0]?.sequence ?? 0)
  })

  it('gives at most what was asked for, and each event to one claim alone', async () => {
    const writes = await tested.createMany(7)
    const claims = [await tested.claim(3), await tested.claim(3), await tested.claim(3)]
    expect(claims.map(idsOf)).toEqual([
      eventIds(...writes.slice(0, 3)),
      eventIds(...writes.slice(3, 6)),
      eventIds(...writes.slice(6)),
    ])
    expect(new Set(claims.map(({ token }) => token)).size).toBe(3)
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
  })

  it('gives claims that are asked for at once nothing in common', async () => {
    const writes = await tested.createMany(20)
    const claims = await Promise.all(Array.from({ length: 5 }, () => tested.claim(4)))
    expect(claims.flatMap(idsOf).sort()).toEqual(eventIds(...writes).sort())
  })

  it('finds nothing where nothing was made', async () => {
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    expect(await tested.measure()).toEqual({ pending: 0, dead: 0, oldestAtMs: undefined })
    expect(await tested.settle(1)).toBe('stale')
  })

  it('sees every write that was acknowledged before', async () => {
    const missed: string[] = []
    for (let n = 0; n < 25; n++) {
      const write = await tested.create()
      const { token, events } = await tested.claim()
      if (events[0]?.id !== write.event.id) missed.push(write.event.id)
      await tested.settle(token)
    }
    expect(missed).toEqual([])
  })

  it('announces nothing of a write that was not stored', async () => {
    const create = await tested.create()
    await tested.store.commit(orderWrite({ key: create.key }), never())
    await tested.store.commit(orderWrite({ id: create.order.id, key: 'another' }), never())
    await tested.store.commit(cancelWrite(create, { version: 3 }), never())
    expect(await tested.claimIds()).toEqual(eventIds(create))
    expect(await tested.measure()).toEqual({ pending: 1, dead: 0, oldestAtMs: create.atMs })
  })

  it('never gives again what its claim did not name', async () => {
    const writes = await tested.createMany(3)
    const { token, events } = await tested.claim()
    const [, second] = events
    if (second) expect(await tested.settle(token, retry(second, tested.nowMs))).toBe('settled')
    expect(await tested.claimIds()).toEqual(eventIds(...writes.slice(1, 2)))
    tested.nowMs += 10 * LEASE_MS
    expect(await tested.claimIds()).toEqual(eventIds(...writes.slice(1, 2)))
  })

  it('hands a claim on when its lease is over, and refuses the old token', async () => {
    const writes = await tested.createMany(2)
    const old = await tested.claim()
    tested.nowMs += LEASE_MS - 1
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    tested.nowMs += 1
    const next = await tested.claim()
    expect(idsOf(next)).toEqual(eventIds(...writes))
    expect(next.token).not.toBe(old.token)
    const before = await tested.measure()
    const exceptions = old.events.map(event => retry(event, tested.nowMs))
    expect(await tested.settle(old.token, ...exceptions)).toBe('stale')
    expect(await tested.settle(old.token)).toBe('stale')
    expect(await tested.measure()).toEqual(before)
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    expect(await tested.settle(next.token)).toBe('settled')
    expect(await tested.measure()).toEqual({ pending: 0, dead: 0, oldestAtMs: undefined })
  })

  it('settles after the end of the lease what nobody else has claimed since', async () => {
    await tested.create()
    const { token } = await tested.claim()
    tested.nowMs += 2 * LEASE_MS
    expect(await tested.settle(token)).toBe('settled')
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    expect(await tested.settle(token)).toBe('stale')
  })

  it('hands on in parts what was claimed as a whole', async () => {
    const writes = await tested.createMany(5)
    await tested.claim()
    tested.nowMs += LEASE_MS
    const parts = [await tested.claimIds(2), await tested.claimIds(2), await tested.claimIds(2)]
    expect(parts.map(part => part.length)).toEqual([2, 2, 1])
    expect(parts.flat()).toEqual(eventIds(...writes))
  })

  it('gives an event again when it is due, with the attempts that it has had', async () => {
    await tested.createMany(2)
    const first = await tested.claim()
    const [one, two] = first.events
    if (!one || !two) throw new Error('two were made')
    await tested.settle(first.token, retry(one, tested.nowMs + 500), retry(two, tested.nowMs + 300))
    tested.nowMs += 299
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    tested.nowMs += 1
    const second = await tested.claim()
    expect(second.events).toEqual([{ ...two, attempts: 1 }])
    await tested.settle(second.token, retry({ ...two, attempts: 6 }, tested.nowMs))
    tested.nowMs += 200
    expect((await tested.claim()).events).toEqual([
      { ...one, attempts: 1 },
      { ...two, attempts: 7 },
    ])
    tested.nowMs += LEASE_MS
    expect((await tested.claim()).events.map(({ attempts }) => attempts)).toEqual([1, 7])
  })

  it('takes first what fell due first', async () => {
    await tested.createMany(3)
    const first = await tested.claim()
    const [one, two, three] = first.events
    if (!one || !two || !three) throw new Error('three were made')
    const { nowMs } = tested
    await tested.settle(first.token, retry(one, nowMs + 30), retry(two, nowMs + 10), retry(three, nowMs + 20))
    tested.nowMs += 30
    const ids = [await tested.claimIds(1), await tested.claimIds(1), await tested.claimIds(1)].flat()
    expect(ids).toEqual([two.id, three.id, one.id])
  })

  it('fills at most half a claim with retries while fresh events wait, and all of it when none do', async () => {
    await tested.createMany(12)
    const bad = await tested.claim(10)
    await tested.settle(bad.token, ...bad.events.map(event => retry(event, tested.nowMs)))
    const attempts = async (limit: number) => {
      const { events } = await tested.claim(limit)
      return events.map(event => event.attempts)
    }
    await tested.createMany(2)
    expect(await attempts(3)).toEqual([1, 0, 0])
    expect(await attempts(4)).toEqual([1, 1, 0, 0])
    expect(await attempts(4)).toEqual([1, 1, 1, 1])
    await tested.create()
    // Of one alone, the one that failed: it has waited longer.
    expect(await attempts(1)).toEqual([1])
    expect(await attempts(9)).toEqual([1, 1, 0])
  })

  it('takes no notice of an exception for an event that is not of the claim', async () => {
    await tested.createMany(3)
    const [one, two] = [await tested.claim(1), await tested.claim(1)]
    const [theirs] = two.events
    if (!theirs) throw new Error('three were made')
    const fresh = { ...theirs, sequence: theirs.sequence + 1 }
    const unknown = { ...theirs, sequence: 1_000 }
    const named = [theirs, fresh, unknown].map(event => retry(event, tested.nowMs))
    expect(await tested.settle(one.token, ...named)).toBe('settled')
    expect((await tested.measure()).pending).toBe(2)
    const three = await tested.claim()
    expect(three.events.map(({ attempts }) => attempts)).toEqual([0])
    expect([await tested.settle(two.token), await tested.settle(three.token)]).toEqual(['settled', 'settled'])
    expect((await tested.measure()).pending).toBe(0)
  })

  it('counts what is neither delivered nor dead, and knows the oldest of it', async () => {
    for (const atMs of [100, 200, 300]) await tested.create({ atMs })
    const states = [await tested.measure()]
    const { token, events } = await tested.claim(2)
    states.push(await tested.measure())
    const [one, two] = events
    if (!one || !two) throw new Error('three were made')
    await tested.settle(token, retry(two, tested.nowMs + 50))
    states.push(await tested.measure())
    const third = await tested.claim(2)
    await tested.settle(third.token)
    states.push(await tested.measure())
    tested.nowMs += 50
    const fourth = await tested.claim()
    states.push(await tested.measure())
    await tested.settle(fourth.token)
    states.push(await tested.measure())
    expect(states.map(({ pending, oldestAtMs }) => [pending, oldestAtMs])).toEqual([
      [3, 100],
      [3, 100],
      [2, 200],
      [1, 200],
      [1, 200],
      [0, undefined],
    ])
  })

  it('survives close and reopen: what is claimed, waiting, dead and fresh', async () => {
    const [, second, third, fourth] = await tested.createMany(4)
    const first = await tested.claim(3)
    const [one, two, three] = first.events
    if (!one || !two || !three) throw new Error('four were made')
    const due = retry(two, tested.nowMs + 2 * LEASE_MS)
    await tested.settle(first.token, due, { ...retry(three, 0), dueAtMs: undefined })
    const held = await tested.claim(1)
    const before = await tested.measure()
    await tested.reopen()
    expect(await tested.measure()).toEqual(before)
    expect(await tested.deadIds()).toEqual([third?.event.id])
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    expect(await tested.settle(first.token)).toBe('stale')
    tested.nowMs += LEASE_MS
    const again = await tested.claim()
    expect(idsOf(again)).toEqual([fourth?.event.id])
    expect(await tested.settle(held.token)).toBe('stale')
    expect(await tested.settle(again.token)).toBe('settled')
    tested.nowMs += LEASE_MS
    const last = await tested.claim()
    expect(last.events.map(({ id, attempts }) => [id, attempts])).toEqual([[second?.event.id, 1]])
    await tested.reopen()
    expect(await tested.settle(last.token)).toBe('settled')
    expect(await tested.measure()).toEqual({ pending: 0, dead: 1, oldestAtMs: undefined })
  })

  it('takes leases and delays for over that a clock dated which was set back since', async () => {
    const [one, two] = await tested.createMany(2)
    const first = await tested.claim(1)
    const second = await tested.claim(1)
    const [event] = first.events
    if (event) await tested.settle(first.token, retry(event, tested.nowMs + LONGEST_WAIT_MS))
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    // As clocks are set to keep the time.
    tested.nowMs -= SET_BACK_MS
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    tested.nowMs -= 1
    expect(await tested.claimIds()).toEqual(eventIds(...(one ? [one] : [])))
    tested.nowMs -= LONGEST_WAIT_MS + SET_BACK_MS + 10 * LEASE_MS
    expect((await tested.claimIds()).sort()).toEqual([one, two].map(write => write?.event.id).sort())
    expect(await tested.settle(second.token)).toBe('stale')
  })

  it('settles a claim in part, and goes on with the rest under its token and lease', async () => {
    const writes = await tested.createMany(4)
    const { token, events } = await tested.claim()
    const [slow, failed] = events
    if (!slow || !failed) throw new Error('four were made')
    const exceptions = [retry(failed, tested.nowMs + 500)]
    const part = { token, atMs: tested.nowMs, exceptions, keeps: [slow.sequence] }
    expect(await tested.store.outbox.settle(part)).toBe('settled')
    expect(await tested.measure()).toMatchObject({ pending: 2, dead: 0 })
    expect(await tested.purge()).toBe(2)
    // Of those that were delivered beside it, the next events need not wait.
    const second = await tested.cancel(writes[2] ?? writes[0] ?? (await tested.create()))
    expect(await tested.claimIds()).toEqual(eventIds(second))
    // Again, and once more after an answer that did not come.
    expect(await tested.store.outbox.settle(part)).toBe('settled')
    tested.nowMs += 500
    expect(await tested.claimIds()).toEqual(eventIds(...writes.slice(1, 2)))
    expect(await tested.settle(token)).toBe('settled')
    expect(await tested.settle(token)).toBe('stale')
  })

  it('keeps those of an order together, and takes back what it kept when the lease is over', async () => {
    const create = await tested.create()
    const cancel = await tested.cancel(create)
    const other = await tested.create()
    const { token, events } = await tested.claim()
    const keeps = events.slice(0, 2).map(({ sequence }) => sequence)
    await tested.store.outbox.settle({ token, atMs: tested.nowMs, exceptions: [], keeps })
    expect(await tested.ask()).toEqual({ kind: 'nothing' })
    expect((await tested.measure()).oldestAtMs).toBe(create.atMs)
    tested.nowMs += LEASE_MS
    expect(await tested.claimIds()).toEqual(eventIds(create, cancel))
    expect(await tested.settle(token)).toBe('stale')
    expect(other.event.id).not.toBe('')
  })
}
