import { type Bench, openBench } from '../../support/bench.ts'
import { created, demand, problem, same } from '../../support/expect.ts'
import { later } from '../../support/later.ts'
import { unitPriceOf } from '../../support/pricing-stand-in.ts'
import { freshKey, freshSku, sampleOrder } from '../../support/samples.ts'
import type { Trial } from '../../support/trial.ts'
import { passed } from '../../support/until.ts'
import { watched } from './activity.ts'
import { LASTING, SHORT_LIVED, SHORT_MS, SHORT_NEGATIVES } from './configurations.ts'
import { invalidate } from './invalidate.ts'

/** Prices are used again for as long as they may be, and no longer than until an operator says so. */
export async function prices(trial: Trial): Promise<void> {
  const lasting = await openBench(trial, LASTING)
  await untilInvalidated(lasting)
  await whileHeld(lasting)
  await untilOver(trial)
}

async function untilInvalidated(bench: Bench): Promise<void> {
  const { trial, pricing, admin } = bench

  await trial.check('a price is used again until it is put out of date', async () => {
    const sku = freshSku()
    same(await priceOf(bench, sku), unitPriceOf(sku), 'the price')
    pricing.prices.set(sku, 7_777)
    const calls = pricing.calls.length
    same(await priceOf(bench, sku), unitPriceOf(sku), 'the price')
    same(pricing.calls.length - calls, 0, 'the calls to pricing')
    await invalidate(admin, `price:EUR:${sku}`)
    same(await priceOf(bench, sku), 7_777, 'the price')
    same(pricing.calls.length - calls, 1, 'the calls to pricing')
  })

  await trial.check(
    'one price put out of date leaves the others, and those in other currencies',
    async () => {
      const [sku, other] = [freshSku(), freshSku()]
      for (const [currency, asked] of [
        ['EUR', sku],
        ['USD', sku],
        ['EUR', other],
      ] as const)
        await priceOf(bench, asked, currency)
      await invalidate(admin, `price:EUR:${sku}`)
      const calls = pricing.calls.length
      await priceOf(bench, sku, 'USD')
      await priceOf(bench, other)
      same(pricing.calls.length - calls, 0, 'the calls to pricing')
      const items = [sku, other].map(sku => ({ sku, quantity: 1 }))
      created(await bench.api.order(freshKey(), sampleOrder({ items })))
      same(
        pricing.calls
          .slice(calls)
          .map(({ skus }) => skus.join())
          .join(),
        sku,
        'the SKUs asked for',
      )
    },
  )

  await trial.check('an unknown SKU is remembered as such, until it is put out of date', async () => {
    const sku = `NONE-${freshSku()}`
    const calls = pricing.calls.length
    for (let repeat = 1; repeat <= 3; repeat++) await unknown(bench, sku)
    same(pricing.calls.length - calls, 1, 'the calls to pricing')
    pricing.prices.set(sku, 250)
    const [, activity] = await watched(admin, () => unknown(bench, sku))
    demand(activity.negatives > 0, 'a negative answer from the cache')
    await invalidate(admin, `price:EUR:${sku}`)
    same(await priceOf(bench, sku), 250, 'the price')
    same(pricing.calls.length - calls, 2, 'the calls to pricing')
  })
}

/** An operator puts a price out of date while somebody waits for it. */
async function whileHeld(bench: Bench): Promise<void> {
  const { trial, pricing, admin } = bench
  for (const [what, oldLandsLast] of [
    ['before the new one', false],
    ['after the new one', true],
  ] as const) {
    await trial.check(
      `a price that was asked for before it was put out of date, and comes ${what}, is not kept`,
      async () => {
        const sku = freshSku()
        const calls = pricing.calls.length
        const [, activity] = await watched(admin, async () => {
          pricing.behaviour = { kind: 'hold' }
          const before = later(priceOf(bench, sku))
          await pricing.called(calls + 1)
          pricing.prices.set(sku, 7_777)
          await invalidate(admin, `price:EUR:${sku}`)
          if (oldLandsLast) pricing.behaviour = { kind: 'answer' }
          const after = later(priceOf(bench, sku))
          const call = await pricing.called(calls + 2)
          same(call.skus.join(), sku, 'the SKUs that the later order asks for')
          if (oldLandsLast) same(await after, 7_777, 'the price of the later order')
          pricing.release()
          same(await before, unitPriceOf(sku), 'the price of the earlier order')
          same(await after, 7_777, 'the price of the later order')
        })
        same(activity.fillsRefused, 1, 'the fills refused')
        same(await priceOf(bench, sku), 7_777, 'the price of the next order')
        same(pricing.calls.length - calls, 2, 'the calls to pricing')
        return `${activity.fillsRefused} fill refused`
      },
    )
  }

  await trial.check(
    'who comes after the invalidation shares the new call, and nobody the old one',
    async () => {
      const [sku, other] = [freshSku(), freshSku()]
      const calls = pricing.calls.length
      pricing.behaviour = { kind: 'hold' }
      const items = [sku, other].map(sku => ({ sku, quantity: 1 }))
      const before = later(bench.api.order(freshKey(), sampleOrder({ items })))
      await pricing.called(calls + 1)
      await invalidate(admin, `price:EUR:${sku}`)
      const after = later(Promise.all(Array.from({ length: 10 }, () => priceOf(bench, sku))))
      await pricing.called(calls + 2)
      pricing.release()
      created(await before)
      await after
      const asked = pricing.calls.slice(calls).flatMap(({ skus }) => skus)
      same(asked.filter(name => name === sku).length, 2, 'the times that the SKU was asked for')
      same(asked.filter(name => name === other).length, 1, 'the times that the other was asked for')
    },
  )
}

async function untilOver(trial: Trial): Promise<void> {
  await trial.check('a price that changes without us is seen once its time is over', async () => {
    const bench = await openBench(trial, SHORT_LIVED)
    const sku = freshSku()
    same(await priceOf(bench, sku), unitPriceOf(sku), 'the price')
    bench.pricing.prices.set(sku, 7_777)
    await passed(SHORT_MS)
    same(await priceOf(bench, sku), 7_777, 'the price')
    return `after ${SHORT_MS} ms`
  })

  await trial.check('an unknown SKU is asked for again once its time is over', async () => {
    const bench = await openBench(trial, SHORT_NEGATIVES)
    const [known, missing] = [freshSku(), `NONE-${freshSku()}`]
    await priceOf(bench, known)
    await unknown(bench, missing)
    await unknown(bench, missing)
    same(bench.pricing.calls.length, 2, 'the calls to pricing')
    bench.pricing.prices.set(missing, 250)
    await passed(SHORT_MS)
    same(await priceOf(bench, missing), 250, 'the price')
    await priceOf(bench, known)
    same(bench.pricing.calls.length, 3, 'the calls to pricing')
    return `after ${SHORT_MS} ms`
  })

  await trial.check('with negativeSeconds 0 an unknown SKU is asked for every time', async () => {
    const bench = await openBench(trial, SHORT_LIVED)
    const sku = `NONE-${freshSku()}`
    for (let repeat = 1; repeat <= 3; repeat++) await unknown(bench, sku)
    same(bench.pricing.calls.length, 3, 'the calls to pricing')
  })
}

/** What an order that is made now pays for one piece. */
async function priceOf({ api }: Bench, sku: string, currency = 'EUR'): Promise<number | undefined> {
  const order = created(await api.order(freshKey(), sampleOrder({ currency, items: [{ sku, quantity: 1 }] })))
  return order.items[0]?.unitPrice
}

async function unknown({ api }: Bench, sku: string): Promise<void> {
  problem(await api.order(freshKey(), sampleOrder({ items: [{ sku, quantity: 1 }] })), 400, 'unknown-sku')
}
