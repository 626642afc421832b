import type { Bench } from '../../support/bench.ts'
import { cancelled, created, demand, same } from '../../support/expect.ts'
import { freshCustomer, freshKey, freshSku, sampleOrder } from '../../support/samples.ts'
import { watched } from './activity.ts'
import { type Known, WAYS, Witness } from './witness.ts'

const WRITERS = 8
const READERS = 8
const CUSTOMERS = 2
// As many orders of each customer as a page holds, so that none may be missing from it.
const ROUNDS = (100 * CUSTOMERS) / WRITERS

/** Writers read what they wrote while everybody reads and writes. */
export async function writers(bench: Bench): Promise<void> {
  const { trial, admin } = bench
  const witness = new Witness()

  await trial.check(
    `${WRITERS} writers and ${READERS} readers at once: everyone is served, much of it from the cache`,
    async () => {
      const startedMs = performance.now()
      const [, activity] = await watched(admin, () => load(bench, witness))
      same(witness.orders, WRITERS * ROUNDS, 'the orders')
      same(activity.troubles, 0, 'the loads that brought nothing')
      demand(activity.hits > 1_000, `more than 1,000 hits, saw ${activity.hits}`)
      const elapsedMs = Math.round(performance.now() - startedMs)
      return `${witness.orders} orders, ${activity.hits} hits, ${activity.loads} loads in ${elapsedMs} ms`
    },
  )

  for (const way of WAYS) {
    await trial.check(`an order read ${way} is never older than what was acknowledged before`, async () => {
      const { count, stale } = witness.reads(way)
      demand(count > 500, `more than 500 reads, saw ${count}`)
      demand(stale.length === 0, `no stale read of ${count}, saw ${stale.length}, the first ${stale[0]}`)
      return `${count} reads, 0 stale`
    })
  }
}

async function load({ api, as }: Bench, witness: Witness): Promise<void> {
  const customers = Array.from({ length: CUSTOMERS }, freshCustomer)
  const items = Array.from({ length: 10 }, () => ({ sku: freshSku(), quantity: 1 }))
  let over = false

  const write = async (writer: number) => {
    const customerId = String(customers[writer % CUSTOMERS])
    for (let round = 0; round < ROUNDS; round++) {
      const known = { id: '', customerId, key: freshKey() }
      // "No such order" is remembered too, and must be forgotten.
      await witness.read(api, 'by its key', known)
      const { id } = created(await api.order(known.key, sampleOrder({ customerId, items })))
      await acknowledged({ ...known, id }, 1)
      cancelled(await api.cancel(freshKey(), id))
      await acknowledged({ ...known, id }, 2)
    }
  }
  const acknowledged = async (known: Known, version: number) => {
    witness.acknowledge(known, version)
    for (const client of [api, as.masked]) {
      await Promise.all(WAYS.map(way => witness.read(client, way, known)))
    }
  }
  const read = async (reader: number) => {
    const client = reader % 2 === 0 ? api : as.masked
    for (let turn = reader; !over; turn++) {
      const known = witness.recent(reader)
      const way = WAYS[turn % WAYS.length]
      if (known && way) await witness.read(client, way, known)
      else await new Promise(resolve => setImmediate(resolve))
    }
  }

  const writing = Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer))).finally(() => {
    over = true
  })
  await Promise.all([writing, ...Array.from({ length: READERS }, (_, reader) => read(reader))])
}
