import type { Answer } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import {
  created,
  demand,
  type OrderBody,
  pageOf,
  plain,
  problem,
  same,
  status,
} from '../../support/expect.ts'
import { freshCustomer, freshKey, sampleOrder } from '../../support/samples.ts'

/** GET and HEAD /v1/orders: a customer's orders page by page, or the one that a key made. */
export async function listing(bench: Bench): Promise<void> {
  await wholeLists(bench)
  await pages(bench)
  await byKey(bench)
  await readers(bench)
  await encoded(bench)
}

async function wholeLists({ trial, api }: Bench): Promise<void> {
  const customerId = freshCustomer()
  const older = created(await api.order(freshKey(), sampleOrder({ customerId })))
  const newer = created(await api.order(freshKey(), sampleOrder({ customerId })))

  await trial.check(
    "a customer's orders are listed newest first, each byte for byte as GET shows it",
    async () => {
      const answer = await api.list({ customerId })
      pageOf(answer)
      const single = async ({ id }: OrderBody) => (await api.get(`/v1/orders/${id}`)).body
      const expected = `{"orders":[${await single(newer)},${await single(older)}],"nextCursor":null}`
      same(answer.body, expected, 'the body')
    },
  )

  await trial.check('a customer without orders has an empty list, not a 404', async () => {
    const answer = await api.list({ customerId: freshCustomer() })
    pageOf(answer)
    same(answer.body, '{"orders":[],"nextCursor":null}', 'the body')
  })

  await trial.check('HEAD of a list gives the headers of GET and no body', async () => {
    const [get, head] = [
      await api.list({ customerId }),
      await api.send('HEAD', `/v1/orders?customerId=${customerId}`),
    ]
    status(head, 200)
    plain(head)
    same(head.body, '', 'the body')
    for (const name of ['etag', 'content-type', 'content-length', 'cache-control'])
      same(head.headers[name], get.headers[name], name)
  })

  await trial.check('If-None-Match with the tag of a list gives 304, with another one 200', async () => {
    const etag = String((await api.list({ customerId })).headers.etag)
    for (const value of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await api.list({ customerId }, { 'if-none-match': value })
      status(answer, 304)
      plain(answer)
      same(answer.body, '', 'the body')
      same(answer.headers.etag, etag, 'ETag')
    }
    status(await api.list({ customerId }, { 'if-none-match': '"other"' }), 200)
  })

  await trial.check('the tag of a list changes with an order more, and with one cancelled', async () => {
    const tags = [tagOf(await api.list({ customerId }))]
    const { id } = created(await api.order(freshKey(), sampleOrder({ customerId })))
    tags.push(tagOf(await api.list({ customerId }, { 'if-none-match': String(tags[0]) })))
    status(await api.cancel(freshKey(), id), 200)
    tags.push(tagOf(await api.list({ customerId }, { 'if-none-match': String(tags[1]) })))
    same(new Set(tags).size, 3, 'the number of distinct tags')
  })

  await trial.check('Request-Budget-Ms is judged on lists too', async () => {
    problem(await api.list({ customerId }, { 'request-budget-ms': 'soon' }), 400, 'validation-failed')
    pageOf(await api.list({ customerId }, { 'request-budget-ms': '5000' }))
  })
}

async function pages({ trial, api, as }: Bench): Promise<void> {
  const customerId = freshCustomer()
  const orders: OrderBody[] = []
  while (orders.length < 21) orders.push(created(await api.order(freshKey(), sampleOrder({ customerId }))))
  const newestFirst = idsOf(orders).sort().reverse()

  for (const [limit, sizes] of [
    [undefined, '20,1'],
    ['1', Array(21).fill(1).join()],
    ['4', '4,4,4,4,4,1'],
    ['7', '7,7,7'],
    ['21', '21'],
    ['100', '21'],
  ] as const) {
    await trial.check(
      `21 orders in pages of ${limit ?? 'the default'}: each once, newest first`,
      async () => {
        const read = await allPages(api, { customerId, ...(limit !== undefined && { limit }) })
        same(read.map(page => page.length).join(), sizes, 'the sizes of the pages')
        same(idsOf(read.flat()).join(), newestFirst.join(), 'the ids')
        return `${read.length} pages`
      },
    )
  }

  await trial.check('a page may be asked for again: the same bytes, and 304 for its tag', async () => {
    const { nextCursor } = pageOf(await api.list({ customerId, limit: '5' }))
    const query = { customerId, limit: '5', cursor: String(nextCursor) }
    const [page, again] = [await api.list(query), await api.list(query)]
    pageOf(page)
    same(again.body, page.body, 'the body')
    status(await api.list(query, { 'if-none-match': tagOf(page) }), 304)
  })

  await trial.check('a page may go on in another size', async () => {
    const first = pageOf(await api.list({ customerId, limit: '5' }))
    const rest = pageOf(await api.list({ customerId, limit: '50', cursor: String(first.nextCursor) }))
    same(idsOf([...first.orders, ...rest.orders]).join(), newestFirst.join(), 'the ids')
    same(rest.nextCursor, null, 'nextCursor')
  })

  await trial.check('orders that come meanwhile do not shift the pages', async () => {
    const read: OrderBody[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page = pageOf(await api.list({ customerId, limit: '5', ...(cursor && { cursor }) }))
      read.push(...page.orders)
      cursor = page.nextCursor
      created(await api.order(freshKey(), sampleOrder({ customerId })))
    }
    same(idsOf(read).join(), newestFirst.join(), 'the ids')
    same(pageOf(await api.list({ customerId, limit: '100' })).orders.length, 26, 'the orders afterwards')
  })

  await trial.check('a cursor leads nowhere but to orders of the customer that is asked for', async () => {
    const cursor = String(pageOf(await api.list({ customerId, limit: '1' })).nextCursor)
    same(pageOf(await api.list({ customerId: freshCustomer(), cursor })).orders.length, 0, 'the orders')
    same(pageOf(await as.stranger.list({ customerId, cursor })).orders.length, 0, 'the orders')
  })
}

async function byKey({ trial, api, as }: Bench): Promise<void> {
  const [key, customerId] = [freshKey(), freshCustomer()]
  const first = await api.order(key, sampleOrder({ customerId }))
  const { id } = created(first)
  const alone = `{"orders":[${first.body}],"nextCursor":null}`
  const queries: Record<string, Record<string, string>> = {
    'its bare key': { idempotencyKey: key },
    'its quoted key': { idempotencyKey: `"${key}"` },
    'its key and its customer': { idempotencyKey: key, customerId },
    'its key and a limit': { idempotencyKey: key, limit: '1' },
  }
  for (const [what, query] of Object.entries(queries)) {
    await trial.check(`an order is listed by ${what}, alone`, async () => {
      created(await api.order(freshKey(), sampleOrder({ customerId })))
      const answer = await api.list(query)
      pageOf(answer)
      same(answer.body, alone, 'the body')
      status(await api.list(query, { 'if-none-match': tagOf(answer) }), 304)
    })
  }

  const elsewhere: Record<string, [client: 'full' | 'stranger', query: Record<string, string>]> = {
    'a key that nobody used': ['full', { idempotencyKey: freshKey() }],
    'a key of another case': ['full', { idempotencyKey: key.toUpperCase() }],
    'its key and another customer': ['full', { idempotencyKey: key, customerId: freshCustomer() }],
    "another tenant's key": ['stranger', { idempotencyKey: key }],
    "another tenant's key and customer": ['stranger', { idempotencyKey: key, customerId }],
    'a key called __proto__': ['stranger', { idempotencyKey: '__proto__' }],
    'a key like SQL': ['full', { idempotencyKey: "' OR '1'='1" }],
  }
  for (const [what, [client, query]] of Object.entries(elsewhere)) {
    await trial.check(`${what} lists nothing`, async () => {
      const answer = await as[client].list(query)
      pageOf(answer)
      same(answer.body, '{"orders":[],"nextCursor":null}', 'the body')
    })
  }

  await trial.check('two tenants with one key each list their own order', async () => {
    const theirs = created(await as.stranger.order(key, sampleOrder()))
    same(idsOf(pageOf(await as.stranger.list({ idempotencyKey: key })).orders).join(), theirs.id, 'the ids')
    same(idsOf(pageOf(await api.list({ idempotencyKey: key })).orders).join(), id, 'the ids')
  })

  for (const odd of ['two words', '"a\\"b\\\\c"', 'one, two', 'a&b=c#d+e%20', 'k'.repeat(255)]) {
    await trial.check(`an order is listed by the key ${odd.slice(0, 20)}`, async () => {
      const order = created(await as.stranger.order(odd, sampleOrder()))
      same(idsOf(pageOf(await as.stranger.list({ idempotencyKey: odd })).orders).join(), order.id, 'the ids')
    })
  }
}

async function readers({ trial, api, as, nobody }: Bench): Promise<void> {
  const [key, customerId] = [freshKey(), freshCustomer()]
  const request = sampleOrder({ customerId, reference: 'a secret reference' })
  created(await api.order(key, request))

  await trial.check("another tenant's customer has an empty list, like one that is not there", async () => {
    const foreign = await as.stranger.list({ customerId })
    const absent = await as.stranger.list({ customerId: freshCustomer() })
    same(foreign.body, '{"orders":[],"nextCursor":null}', 'the body')
    same(absent.body, foreign.body, 'the body')
    same(absent.headers.etag, foreign.headers.etag, 'ETag')
  })

  await trial.check('masked: lists hide the fields, whichever way they are asked for', async () => {
    for (const query of [{ customerId }, { idempotencyKey: key }]) {
      const [full, masked] = [await api.list(query), await as.masked.list(query)]
      same(pageOf(full).orders[0]?.reference, request.reference, 'reference in the full view')
      const [order] = pageOf(masked).orders
      same(order?.customerId, '***', 'customerId')
      same(order?.reference, '***', 'reference')
      demand(
        !/secret/.test(masked.body) && !masked.body.includes(customerId),
        `no secret, saw ${masked.body}`,
      )
      demand(tagOf(masked) !== tagOf(full), `a tag other than the full view's ${tagOf(full)}`)
      status(await as.masked.list(query, { 'if-none-match': tagOf(full) }), 200)
      status(await as.masked.list(query, { 'if-none-match': tagOf(masked) }), 304)
    }
  })

  await trial.check('masked: an entry is byte for byte what the same key reads by id', async () => {
    const masked = await as.masked.list({ customerId })
    const [order] = pageOf(masked).orders
    const single = await as.masked.get(`/v1/orders/${order?.id}`)
    same(masked.body, `{"orders":[${single.body}],"nextCursor":null}`, 'the body')
  })

  await trial.check('lists need a key that may read', async () => {
    same(pageOf(await as.reader.list({ customerId })).orders.length, 1, 'the orders')
    problem(await as.writer.list({ customerId }), 403, 'forbidden')
    problem(await nobody.list({ customerId }), 401, 'unauthenticated')
    problem(await nobody.list({ limit: 'many' }), 401, 'unauthenticated')
  })
}

async function encoded({ trial, api }: Bench): Promise<void> {
  const customerId = `a.B_c:d-${freshCustomer()}`
  const { id } = created(await api.order(freshKey(), sampleOrder({ customerId })))
  for (const [what, query] of Object.entries({
    'written as it is': `customerId=${customerId}`,
    'percent-encoded where it need not be': `customerId=${customerId.replaceAll(/[.:_-]/g, hex)}`,
    'percent-encoded throughout': `customerId=${[...customerId].map(hex).join('')}`,
    'after a name that is percent-encoded': `customer%49d=${customerId}`,
    'between ampersands that part nothing': `&customerId=${customerId}&&`,
  })) {
    await trial.check(`a customerId ${what} is the same customer`, async () => {
      same(idsOf(pageOf(await api.get(`/v1/orders?${query}`)).orders).join(), id, 'the ids')
    })
  }
}

const hex = (character: string) => `%${character.charCodeAt(0).toString(16)}`
const idsOf = (orders: readonly OrderBody[]) => orders.map(({ id }) => id)
const tagOf = ({ headers }: Answer) => String(headers.etag)

/** From the first page to the one after which there is none. */
async function allPages(api: Bench['api'], query: Record<string, string>): Promise<(readonly OrderBody[])[]> {
  const pages: (readonly OrderBody[])[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page = pageOf(await api.list({ ...query, ...(cursor && { cursor }) }))
    pages.push(page.orders)
    cursor = page.nextCursor
    demand(pages.length <= 100, 'an end of the pages')
  }
  return pages
}
