import { getEventListeners } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CommitVerdict, Store } from '../../src/store/index.ts'
import { cancelsContract } from '../store/contract/cancels.ts'
import { durableContract } from '../store/contract/durable.ts'
import { listsContract } from '../store/contract/lists.ts'
import { never, orderWrite, someId } from '../support/order-write.ts'

/** One place where a driver keeps orders; every test gets a new one. */
export interface StoreHarness {
  /** Opens a store there; again after a close, to see what it kept. */
  open(): Promise<Store>
  /** What lies there, counted past the store. */
  rows():
    | Promise<{ keys: number; orders: number; events: number }>
    | { keys: number; orders: number; events: number }
  dispose(): Promise<void>
}

/** What the parts of the suite share: the harness of one test, and the store that it opened last. */
export interface StoreUnderTest {
  harness: StoreHarness
  store: Store
}

/** What every driver of the store promises; cancels, lists and the durable hook have files of their own. */
export function storeContract(name: string, makeHarness: () => StoreHarness | Promise<StoreHarness>): void {
  describe(`store contract: ${name}`, () => {
    const tested = {} as StoreUnderTest
    let harness: StoreHarness
    let store: Store

    beforeEach(async () => {
      harness = await makeHarness()
      store = await harness.open()
      Object.assign(tested, { harness, store })
    })
    afterEach(async () => {
      await tested.store.close()
      await harness.dispose()
    })

    describe('cancels', () => cancelsContract(tested))
    describe('lists', () => listsContract(tested))
    describe('the durable hook', () => durableContract(tested))

    it('keeps what it called created', async () => {
      const write = orderWrite()
      expect(await store.commit(write, never())).toEqual({ kind: 'created' })
      await store.close()
      store = tested.store = await harness.open()
      expect(await store.findOrder(write.tenant, write.order.id, never())).toEqual({
        kind: 'found',
        value: { version: 1, json: write.order.json },
      })
      expect(await store.findReply(write, never())).toEqual({
        kind: 'found',
        value: {
          fingerprint: write.fingerprint,
          status: 201,
          location: write.reply.location,
          version: 1,
          json: write.order.json,
        },
      })
      expect(await harness.rows()).toEqual({ keys: 1, orders: 1, events: 1 })
    })

    it.each([
      ['the same fingerprint', 'f'.repeat(64)],
      ['another fingerprint', '0'.repeat(64)],
    ])('answers a taken key with what it holds, byte for byte: %s', async (_, fingerprint) => {
      const json = '{"reference":"naïve \\u0000 \\"quoted\\" 😀", "spaced" : 1.50}'
      const first = orderWrite({ json })
      await store.commit(first, never())
      const verdict = await store.commit(orderWrite({ key: first.key, fingerprint }), never())
      expect(verdict).toEqual({
        kind: 'taken',
        reply: {
          fingerprint: first.fingerprint,
          status: 201,
          location: first.reply.location,
          version: 1,
          json,
        },
      })
      expect(await harness.rows()).toEqual({ keys: 1, orders: 1, events: 1 })
    })

    it('makes one order of 50 parallel writes with one key', async () => {
      const writes = Array.from({ length: 50 }, () => orderWrite({ key: 'one' }))
      const verdicts = await Promise.all(writes.map(write => store.commit(write, never())))
      const winner = writes[verdicts.findIndex(({ kind }) => kind === 'created')]
      expect(count(verdicts)).toEqual({ created: 1, taken: 49 })
      for (const verdict of verdicts) {
        if (verdict.kind === 'taken') expect(verdict.reply.json).toBe(winner?.order.json)
      }
      expect(await harness.rows()).toEqual({ keys: 1, orders: 1, events: 1 })
    })

    it('gives each tenant keys of its own', async () => {
      const writes = ['tenant-1', 'tenant-2'].map(tenant => orderWrite({ tenant, key: 'shared' }))
      const verdicts = await Promise.all(writes.map(write => store.commit(write, never())))
      expect(verdicts).toEqual([{ kind: 'created' }, { kind: 'created' }])
      for (const write of writes) {
        const reply = await store.findReply(write, never())
        expect(reply).toMatchObject({ kind: 'found', value: { json: write.order.json } })
      }
    })

    it('shows no tenant what another has', async () => {
      const write = orderWrite({ tenant: 'tenant-1' })
      await store.commit(write, never())
      expect(await store.findOrder('tenant-2', write.order.id, never())).toEqual({ kind: 'absent' })
      expect(await store.findReply({ ...write, tenant: 'tenant-2' }, never())).toEqual({ kind: 'absent' })
    })

    it('tells what is not there', async () => {
      expect(await store.findOrder('tenant-1', someId(), never())).toEqual({ kind: 'absent' })
      expect(await store.findReply(orderWrite(), never())).toEqual({ kind: 'absent' })
      expect(store.degraded()).toBeUndefined()
    })

    it('shows every acknowledged write to the next look-up', async () => {
      const missed: string[] = []
      const writeAndRead = async () => {
        for (let n = 0; n < 25; n++) {
          const write = orderWrite()
          await store.commit(write, never())
          const order = await store.findOrder(write.tenant, write.order.id, never())
          const reply = await store.findReply(write, never())
          if (order.kind !== 'found' || reply.kind !== 'found') missed.push(write.order.id)
        }
      }
      await Promise.all(Array.from({ length: 8 }, writeAndRead))
      expect(missed).toEqual([])
    })

    it('stores nothing of a write whose signal has aborted', async () => {
      const write = orderWrite()
      expect(await store.commit(write, AbortSignal.abort())).toEqual({ kind: 'withdrawn' })
      expect(await store.findOrder(write.tenant, write.order.id, AbortSignal.abort())).toEqual({
        kind: 'withdrawn',
      })
      expect(await store.findReply(write, AbortSignal.abort())).toEqual({ kind: 'withdrawn' })
      expect(await store.findReply(write, never())).toEqual({ kind: 'absent' })
      expect(await harness.rows()).toEqual({ keys: 0, orders: 0, events: 0 })
    })

    it('takes back a write that nobody has claimed, and the key stays free', async () => {
      const write = orderWrite()
      const controller = new AbortController()
      const verdict = store.commit(write, controller.signal)
      controller.abort()
      expect(await verdict).toEqual({ kind: 'withdrawn' })
      expect(await store.commit(orderWrite({ key: write.key }), never())).toEqual({ kind: 'created' })
      expect(await store.findOrder(write.tenant, write.order.id, never())).toEqual({ kind: 'absent' })
    })

    it('tells the truth about writes that are aborted at any moment', async () => {
      const cases = await Promise.all(
        Array.from({ length: 400 }, async (_, n) => {
          const write = orderWrite()
          const controller = new AbortController()
          const verdict = store.commit(write, controller.signal)
          for (let turns = 0; turns < n % 20; turns++) await turn()
          controller.abort()
          return { write, verdict: await verdict }
        }),
      )
      const wrong: string[] = []
      for (const { write, verdict } of cases) {
        const order = await store.findOrder(write.tenant, write.order.id, never())
        const reply = await store.findReply(write, never())
        const expected = { created: 'found', withdrawn: 'absent' }[verdict.kind as string]
        if (expected && (order.kind !== expected || reply.kind !== expected)) wrong.push(verdict.kind)
        if (order.kind !== reply.kind) wrong.push('half')
      }
      expect(wrong).toEqual([])
      expect(
        cases.filter(({ verdict }) => verdict.kind === 'unavailable' || verdict.kind === 'taken'),
      ).toEqual([])
      const { keys, orders, events } = await harness.rows()
      expect([keys, events]).toEqual([orders, orders])
    })

    it('lets a bad row fail alone, and whole', async () => {
      const old = orderWrite()
      await store.commit(old, never())
      // Its key is new, its order exists: a violation, but not of the key, and so never a duplicate.
      const bad = orderWrite({ id: old.order.id, key: 'new key' })
      const good = Array.from({ length: 10 }, () => orderWrite())
      const group = [...good.slice(0, 5), bad, ...good.slice(5)]
      const verdicts = await Promise.all(group.map(write => store.commit(write, never())))
      expect(count(verdicts)).toEqual({ created: 10, unavailable: 1 })
      expect(verdicts[5]).toEqual({ kind: 'unavailable' })
      expect(await store.findReply(bad, never())).toEqual({ kind: 'absent' })
      expect(await harness.rows()).toEqual({ keys: 11, orders: 11, events: 11 })
      expect(store.degraded()).toBeUndefined()
    })

    it('judges a key beside a bad row as it judges any other', async () => {
      const old = orderWrite()
      await store.commit(old, never())
      const group = [
        orderWrite({ key: 'pair' }),
        orderWrite({ id: old.order.id, key: 'bad' }),
        orderWrite({ key: 'pair' }),
        orderWrite({ key: old.key }),
      ]
      const verdicts = await Promise.all(group.map(write => store.commit(write, never())))
      expect(verdicts.map(({ kind }) => kind)).toEqual(['created', 'unavailable', 'taken', 'taken'])
      expect(verdicts[2]).toMatchObject({ reply: { json: group[0]?.order.json } })
      expect(verdicts[3]).toMatchObject({ reply: { json: old.order.json } })
    })

    it.each([
      ['a prototype', '__proto__'],
      ['a constructor', 'constructor'],
      ['quotes', `'"\`--; DROP TABLE orders`],
      ['wildcards', '%_*?[a-z]'],
      ['a space', ' '],
      ['the longest', '~'.repeat(255)],
    ])('takes hostile keys for ordinary ones: %s', async (_, key) => {
      const write = orderWrite({ key })
      expect(await store.findReply(write, never())).toEqual({ kind: 'absent' })
      expect(await store.commit(write, never())).toEqual({ kind: 'created' })
      expect(await store.commit(orderWrite({ key }), never())).toMatchObject({
        kind: 'taken',
        reply: { json: write.order.json },
      })
      expect(await store.findReply({ ...write, key: `${key}x` }, never())).toEqual({ kind: 'absent' })
    })

    it('tells keys apart by case and by trailing space', async () => {
      const keys = ['Key', 'key', 'key ', ' key']
      const verdicts = await Promise.all(keys.map(key => store.commit(orderWrite({ key }), never())))
      expect(count(verdicts)).toEqual({ created: 4 })
    })

    it('keeps a large order whole', async () => {
      const write = orderWrite({ json: JSON.stringify({ text: 'é'.repeat(200_000) }) })
      await store.commit(write, never())
      const order = await store.findOrder(write.tenant, write.order.id, never())
      expect(order.kind === 'found' && order.value.json === write.order.json).toBe(true)
    })

    it('leaves no listener on a signal', async () => {
      const { signal } = new AbortController()
      const write = orderWrite()
      await store.commit(write, signal)
      await store.commit(write, signal)
      await store.findOrder(write.tenant, write.order.id, signal)
      await store.findReply(write, signal)
      expect(getEventListeners(signal, 'abort')).toEqual([])
    })

    it('finishes what it took before it closes, and takes nothing after', async () => {
      const verdicts = Array.from({ length: 100 }, () => store.commit(orderWrite(), never()))
      const closed = store.close()
      expect(count(await Promise.all(verdicts))).toEqual({ created: 100 })
      await closed
      await store.close()
      expect(await store.commit(orderWrite(), never())).toEqual({ kind: 'unavailable' })
      expect(await store.findOrder('tenant-1', someId(), never())).toEqual({ kind: 'unavailable' })
      expect(await harness.rows()).toEqual({ keys: 100, orders: 100, events: 100 })
    })
  })
}

/** How many verdicts there are of each kind. */
export function count(verdicts: readonly CommitVerdict[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { kind } of verdicts) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}
