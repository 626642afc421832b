import type { Answer } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { Connection, requestBytes } from '../../support/connection.ts'
import { answered, cancelled, created, demand, same, status } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { later } from '../../support/later.ts'
import { freshCustomer, freshKey, freshSku, orderBytes, sampleOrder } from '../../support/samples.ts'
import { until } from '../../support/until.ts'
import { watched } from './activity.ts'
import { invalidate } from './invalidate.ts'

const CROWD = 40
// As many as a page holds.
const LARGE_ORDERS = 100
const HELD_LOADS = 3
const LIMIT_MS = 15_000

/** Something that is read while it changes. */
interface Subject {
  readonly path: string
  /** The request that changes it. */
  readonly change: Buffer
  /** Throws unless the change was made. */
  readonly acknowledged: (answer: Answer) => unknown
  readonly shows: (answer: Answer) => boolean
}

/**
 * A load that begins before a write and ends after its acknowledgement. The store reads one thing after another, so a
 * crowd of large pages that are asked for in the same instant holds up what is asked for among them.
 */
export async function heldLoads(bench: Bench): Promise<void> {
  const { trial, api, admin } = bench
  const crowd = freshCustomer()
  const items = Array.from({ length: 50 }, () => ({ sku: freshSku(), quantity: 1 }))
  const large = () => api.order(freshKey(), sampleOrder({ customerId: crowd, items }))
  for (let half = 1; half <= 2; half++) {
    const answers = await Promise.all(Array.from({ length: LARGE_ORDERS / 2 }, large))
    for (const answer of answers) created(answer)
  }
  // Neither of the changes asks the store before it writes, as both find what they need in the cache: the price, and
  // the order as a full key sees it. The reads are those of a masked key.
  const priced = items.slice(0, 1)

  const joining = (query: (customerId: string, key: string) => string) => async (): Promise<Subject> => {
    const [customerId, key] = [freshCustomer(), freshKey()]
    return {
      path: `/v1/orders?${query(customerId, key)}`,
      change: orderBytes(key, JSON.stringify(sampleOrder({ customerId, items: priced }))),
      acknowledged: answer => created(answer),
      shows: ({ body }) => body.includes('"status":"accepted"'),
    }
  }
  const cancelling = async (): Promise<Subject> => {
    const { id } = created(await api.order(freshKey(), sampleOrder({ items: priced })))
    const path = `/v1/orders/${id}`
    status(await api.get(path), 200)
    const headers = { authorization: `Bearer ${KEYS.full}`, 'idempotency-key': freshKey() }
    return {
      path,
      change: requestBytes('POST', `${path}/cancel`, headers),
      acknowledged: answer => cancelled(answer),
      shows: ({ body }) => body.includes('"status":"cancelled"'),
    }
  }

  for (const [what, subject] of Object.entries({
    "a customer's list that an order joins": joining(customerId => `customerId=${customerId}`),
    'the list by a key that makes its order': joining((_, key) => `idempotencyKey=${key}`),
    'an order that is cancelled': cancelling,
  })) {
    await trial.check(
      `${what} while it is loaded: whoever comes later sees it, and the old is not kept`,
      async () => {
        let rounds = 0
        let held = 0
        const meanwhile = async () => {
          rounds++
          if (await changedMeanwhile(bench, crowd, await subject())) held++
          return held === HELD_LOADS
        }
        const holding = () => until('loads that were held over the change', meanwhile, LIMIT_MS)
        const [, { fillsRefused }] = await watched(admin, holding)
        demand(fillsRefused >= held, `${held} fills refused, saw ${fillsRefused}`)
        return `${held} of ${rounds} loads were held over the change`
      },
    )
  }
}

/** True when the load was held: it brought what was before, after the change had been acknowledged. */
async function changedMeanwhile(
  { as, admin, server }: Bench,
  crowd: string,
  subject: Subject,
): Promise<boolean> {
  const { path, change, acknowledged, shows } = subject
  await invalidate(admin, `customer:one:${crowd}`)
  const [first, ...others] = Array.from({ length: CROWD }, (_, index) => {
    // A page that nobody wants to have, only to be loaded.
    return readBytes(`/v1/orders?customerId=${crowd}&limit=${100 - index}`, KEYS.full, {
      'if-none-match': '*',
    })
  }) as [Buffer, ...Buffer[]]
  const requests = [first, readBytes(path, KEYS.masked), ...others, change]
  const connections = await Promise.all(requests.map(() => Connection.open(server.port)))
  try {
    for (const [index, connection] of connections.entries()) connection.send(requests[index] as Buffer)
    const answers = connections.map(async connection => answered(await connection.read()))
    const all = later(Promise.all(answers))
    let landed = false
    const load = answers[1]?.then(answer => {
      landed = true
      return answer
    })
    acknowledged((await answers.at(-1)) as Answer)
    const overdue = !landed
    const after = await as.masked.get(path)
    status(after, 200)
    demand(shows(after), `the change in a read that began after it, saw ${after.body}`)
    await all
    const kept = await as.masked.get(path)
    same(kept.body, after.body, 'the body that is read when all is loaded')
    return overdue && !shows((await load) as Answer)
  } finally {
    for (const connection of connections) connection.destroy()
  }
}

function readBytes(path: string, key: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  return requestBytes('GET', path, { authorization: `Bearer ${key}`, ...headers })
}
