import { type Answer, tally } from '../../support/answer.ts'
import { type Bench, openBench } from '../../support/bench.ts'
import { requestBytes } from '../../support/connection.ts'
import { created, orderOf, pageOf, problem, same } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { later } from '../../support/later.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshCustomer, freshKey, freshSku, orderBytes, sampleOrder } from '../../support/samples.ts'
import { temporaryFolder } from '../../support/server.ts'
import { together } from '../../support/together.ts'
import type { Trial } from '../../support/trial.ts'
import { passed, until } from '../../support/until.ts'
import { type Activity, watched } from './activity.ts'
import { AHEAD, LASTING, SHORT_LIVED, SHORT_MS } from './configurations.ts'
import { invalidate } from './invalidate.ts'

const READERS = 50

/** Many at once want what is not cached: one load, and an answer for everyone. */
export async function storms(trial: Trial): Promise<void> {
  await afterRestart(trial)
  const lasting = await openBench(trial, LASTING)
  await afterInvalidation(lasting)
  await ofPrices(lasting)
  await pastItsTime(await openBench(trial, SHORT_LIVED))
  await nearItsEnd(await openBench(trial, AHEAD))
}

async function afterRestart(trial: Trial): Promise<void> {
  const folder = await temporaryFolder()
  const before = await openBench(trial, LASTING, folder)
  const order = await before.api.order(freshKey(), sampleOrder())
  const { id } = created(order)
  same(await before.server.stop(), 0, 'the exit code')
  const bench = await openBench(trial, LASTING, folder)

  await trial.check(
    `${READERS} at once read one order that a new process has never read: one load`,
    async () => {
      const [answers, activity] = await read(bench, `/v1/orders/${id}`)
      for (const answer of answers) {
        orderOf(answer)
        same(answer.body, order.body, 'the body')
      }
      return oneLoad(answers, activity)
    },
  )
}

async function afterInvalidation(bench: Bench): Promise<void> {
  const { trial, api, admin } = bench
  const customerId = freshCustomer()
  const key = freshKey()
  const { id } = created(await api.order(key, sampleOrder({ customerId })))
  const things: Record<string, [path: string, tag: string, whole: (answer: Answer) => unknown]> = {
    'one order': [`/v1/orders/${id}`, `order:${id}`, orderOf],
    'one list': [`/v1/orders?customerId=${customerId}`, `customer:one:${customerId}`, pageOf],
  }
  for (const [what, [path, tag, whole]] of Object.entries(things)) {
    await trial.check(`${READERS} at once read ${what} that was just put out of date: one load`, async () => {
      const before = await api.get(path)
      await invalidate(admin, tag)
      const [answers, activity] = await read(bench, path)
      for (const answer of answers) {
        whole(answer)
        same(answer.body, before.body, 'the body')
        same(answer.headers.etag, before.headers.etag, 'ETag')
      }
      return oneLoad(answers, activity)
    })
  }

  await trial.check(
    `${READERS} at once read an order that is not there: one load, fifty times 404`,
    async () => {
      const [answers, activity] = await read(bench, '/v1/orders/01920000-0000-7000-8000-00000000cafe')
      for (const answer of answers) problem(answer, 404, 'not-found')
      same(new Set(answers.map(({ headers }) => headers['x-trace-id'])).size, READERS, 'the trace ids')
      return oneLoad(answers, activity)
    },
  )

  await trial.check('who may not read gets nothing of a load that others share', async () => {
    await invalidate(admin, `order:${id}`)
    const ask = (key: string | undefined) => readBytes(`/v1/orders/${id}`, key)
    const callers = [KEYS.full, KEYS.writer, KEYS.stranger, undefined]
    const keys = Array.from({ length: READERS }, (_, index) => callers[index % callers.length])
    const answers = await together(trial, bench.server.port, keys.map(ask))
    for (const [index, answer] of answers.entries()) {
      if (keys[index] === KEYS.full) orderOf(answer)
      else if (keys[index] === KEYS.writer) problem(answer, 403, 'forbidden')
      else if (keys[index] === KEYS.stranger) problem(answer, 404, 'not-found')
      else problem(answer, 401, 'unauthenticated')
    }
    return tally(answers)
  })
}

async function ofPrices({ trial, server, pricing, admin }: Bench): Promise<void> {
  const sku = freshSku()
  const orders = () => {
    const bytes = () => orderBytes(freshKey(), JSON.stringify(sampleOrder({ items: [{ sku, quantity: 1 }] })))
    return together(trial, server.port, Array.from({ length: READERS }, bytes))
  }
  const storm = async () => {
    const calls = pricing.calls.length
    pricing.behaviour = { kind: 'hold' }
    const pending = later(orders())
    await pricing.called(calls + 1)
    await until('all orders to wait', async () => {
      return (await Metrics.read(admin)).sum('punctual_admission_in_flight') === READERS
    })
    pricing.release()
    const answers = await pending
    for (const answer of answers) created(answer)
    same(pricing.calls.length - calls, 1, 'the calls to pricing')
    return tally(answers)
  }
  await trial.check(`${READERS} orders at once for one SKU that has no price yet: one call to pricing`, storm)

  await trial.check('once the price is known, orders ask no more', async () => {
    const calls = pricing.calls.length
    for (const answer of await orders()) created(answer)
    same(pricing.calls.length - calls, 0, 'the calls to pricing')
    return 'no call'
  })

  await trial.check('the price put out of date: again one call, not one for each order', async () => {
    await invalidate(admin, `price:EUR:${sku}`)
    return storm()
  })
}

async function pastItsTime(bench: Bench): Promise<void> {
  const { trial, api } = bench
  const { id } = created(await api.order(freshKey(), sampleOrder()))

  await trial.check(
    `${READERS} at once read one order whose time in the cache is over: one load`,
    async () => {
      for (let round = 1; round <= 2; round++) {
        const [, warm] = await watched(bench.admin, async () => orderOf(await api.get(`/v1/orders/${id}`)))
        same(warm.loads, 1, 'the loads of one reader')
        await passed(SHORT_MS)
      }
      const [answers, activity] = await read(bench, `/v1/orders/${id}`)
      for (const answer of answers) orderOf(answer)
      return oneLoad(answers, activity)
    },
  )
}

/** From a tenth of its time on an entry is loaded anew behind its readers. */
async function nearItsEnd(bench: Bench): Promise<void> {
  const { trial, api, admin } = bench
  const { id } = created(await api.order(freshKey(), sampleOrder()))

  await trial.check(
    `${READERS} at once read one order that is near its end: no wait, and one load behind them`,
    async () => {
      const order = await api.get(`/v1/orders/${id}`)
      orderOf(order)
      await passed(SHORT_MS)
      const [answers, activity] = await watched(admin, async soFar => {
        const [answers, { hits, leaders, followers }] = await read(bench, `/v1/orders/${id}`)
        same(hits, READERS, 'the hits')
        same(leaders + followers, 0, 'the readers that waited')
        await until('the load behind them', async () => {
          const inFlight = (await Metrics.read(admin)).sum('punctual_cache_in_flight')
          return inFlight === 0 && (await soFar()).loads > 0
        })
        return answers
      })
      for (const answer of answers) same(answer.body, order.body, 'the body')
      same(activity.loads, 1, 'the loads')
      return `${tally(answers)}, ${activity.hits} hits, ${activity.loads} load`
    },
  )
}

/** `READERS` sockets ask for one path in the same instant. */
function read({ trial, server, admin }: Bench, path: string): Promise<[Answer[], Activity]> {
  const bytes = readBytes(path, KEYS.full)
  return watched(admin, () => together(trial, server.port, Array<Buffer>(READERS).fill(bytes)))
}

/** One of the storm has loaded, and nobody else; the rest waited along or came later. */
function oneLoad(answers: readonly Answer[], activity: Activity): string {
  const { loads, troubles, leaders, followers, hits, negatives } = activity
  same(loads, 1, 'the loads')
  same(troubles, 0, 'the loads that brought nothing')
  same(leaders, 1, 'the readers that led')
  same(followers + hits + negatives, answers.length - 1, 'the readers that followed or came later')
  return `${tally(answers)}, ${followers} followed, ${hits + negatives} came later`
}

function readBytes(path: string, key: string | undefined): Buffer {
  return requestBytes('GET', path, key === undefined ? {} : { authorization: `Bearer ${key}` })
}
