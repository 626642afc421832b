import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { OrderWrite } from '../../../src/store/index.ts'
import type { StoreUnderTest } from '../../contracts/store.contract.ts'
import { cancelWrite, never, orderWrite } from '../../support/order-write.ts'

/** What every driver promises whoever must act on each durable write. */
export function durableContract(tested: StoreUnderTest): void {
  /** What became of a write, as it was told: `durable`, and the verdict. */
  async function told(write: OrderWrite, signal = never()): Promise<string[]> {
    const log: string[] = []
    const { kind } = await tested.store.commit(write, signal, () => log.push('durable'))
    return [...log, kind]
  }

  it('hears of a durable write once, before the verdict', async () => {
    const create = orderWrite()
    expect(await told(create)).toEqual(['durable', 'created'])
    expect(await told(cancelWrite(create))).toEqual(['durable', 'created'])
  })

  it('hears nothing of what is not stored', async () => {
    const create = orderWrite()
    await tested.store.commit(create, never())
    const controller = new AbortController()
    const takenBack = told(orderWrite(), controller.signal)
    controller.abort()
    expect(await Promise.all([takenBack, told(orderWrite(), AbortSignal.abort())])).toEqual([
      ['withdrawn'],
      ['withdrawn'],
    ])
    expect(
      await Promise.all([
        told(create),
        told(cancelWrite(create, { version: 3 })),
        told(orderWrite({ id: create.order.id, key: 'bad' })),
        told(cancelWrite(create)),
      ]),
    ).toEqual([['taken'], ['outdated'], ['unavailable'], ['durable', 'created']])
    await tested.store.close()
    expect(await told(orderWrite())).toEqual(['unavailable'])
  })

  it('hears of every write that is stored, at whatever moment its signal aborts', async () => {
    const cases = await Promise.all(
      Array.from({ length: 400 }, async (_, n) => {
        const controller = new AbortController()
        const seen = { write: orderWrite(), times: 0, verdict: '' }
        const verdict = tested.store.commit(seen.write, controller.signal, () => {
          seen.times++
        })
        for (let turns = 0; turns < n % 20; turns++) await turn()
        controller.abort()
        seen.verdict = (await verdict).kind
        return seen
      }),
    )
    // A close finishes what was taken, so nothing comes after it.
    await tested.store.close()
    tested.store = await tested.harness.open()
    const wrong: string[] = []
    for (const { write, times, verdict } of cases) {
      const { kind } = await tested.store.findOrder(write.tenant, write.order.id, never())
      if (times !== (kind === 'found' ? 1 : 0)) wrong.push(`${verdict}: ${kind}, heard of ${times} times`)
    }
    expect(wrong).toEqual([])
  })

  it('is heard before a close is over', async () => {
    let heard = 0
    for (let writes = 0; writes < 100; writes++) {
      void tested.store.commit(orderWrite(), never(), () => {
        heard++
      })
    }
    await tested.store.close()
    expect(heard).toBe(100)
  })

  it('changes no verdict by what it throws, neither its own nor a neighbour’s', async () => {
    const create = orderWrite()
    const heard: number[] = []
    const writes = [create, orderWrite(), cancelWrite(create), create, orderWrite()]
    const verdicts = await Promise.all(
      writes.map((write, n) =>
        tested.store.commit(write, never(), () => {
          heard.push(n)
          if (n < 3) throw [new Error('no'), Object.create(null), undefined][n]
        }),
      ),
    )
    expect(verdicts.map(({ kind }) => kind)).toEqual(['created', 'created', 'created', 'taken', 'created'])
    expect(heard).toEqual([0, 1, 2, 4])
    expect(await told(orderWrite())).toEqual(['durable', 'created'])
    expect(tested.store.degraded()).toBeUndefined()
  })
}
