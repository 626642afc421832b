import { type Answer, tally } from '../../support/answer.ts'
import type { Bench } from '../../support/bench.ts'
import { cancelled, created, demand, orderOf, pageOf, problem, same, status } from '../../support/expect.ts'
import { freshCustomer, freshKey, sampleOrder } from '../../support/samples.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const UNKNOWN = '01920000-0000-7000-8000-000000000000'
const CALLERS = 20

/** POST /v1/orders/{id}/cancel: once per key, once per order, and seen at once by whoever reads. */
export async function cancelling(bench: Bench): Promise<void> {
  await once(bench)
  await seen(bench)
  await conflicts(bench)
  await parallel(bench)
  await masked(bench)
}

async function once({ trial, api, as }: Bench): Promise<void> {
  await trial.check(
    'an order is cancelled: its next version, nothing else changed, and another ETag',
    async () => {
      const first = await api.order(freshKey(), sampleOrder({ reference: 'to be cancelled' }))
      const before = created(first)
      const answer = await api.cancel(freshKey(), before.id)
      const after = cancelled(answer)
      const expected = { ...before, status: 'cancelled', version: 2, updatedAt: after.updatedAt }
      same(answer.body, JSON.stringify(expected), 'the body')
      demand(
        after.updatedAt >= before.createdAt,
        `a time from ${before.createdAt} on, saw ${after.updatedAt}`,
      )
      demand(answer.headers.etag !== first.headers.etag, `an ETag other than ${first.headers.etag}`)
    },
  )

  await trial.check('the same key again gives the first answer again, byte for byte', async () => {
    const [key, { id }] = [freshKey(), created(await api.order(freshKey(), sampleOrder()))]
    const first = await api.cancel(key, id)
    cancelled(first)
    for (const again of [
      await api.cancel(key, id),
      await api.cancel(`"${key}"`, id),
      await api.cancel(key, id, JSON_TYPE, '{}'),
      await as.writer.cancel(key, id),
    ])
      sameReply(again, first)
  })

  await trial.check(
    'after the cancel the POST that made the order still gives its first answer',
    async () => {
      const [key, request] = [freshKey(), sampleOrder()]
      const first = await api.order(key, request)
      cancelled(await api.cancel(freshKey(), created(first).id))
      for (let repeat = 1; repeat <= 2; repeat++) {
        const again = await api.order(key, request)
        same(created(again, true).version, 1, 'version')
        same(again.body, first.body, 'the body')
        for (const name of ['etag', 'location']) same(again.headers[name], first.headers[name], name)
      }
    },
  )

  await trial.check('a key that made an order may cancel it too: the two do not collide', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    const first = await api.order(key, request)
    const { id } = created(first)
    const cancel = await api.cancel(key, id)
    cancelled(cancel)
    same((await api.order(key, request)).body, first.body, 'the body of the order again')
    sameReply(await api.cancel(key, id), cancel)
    problem(await api.order(key, sampleOrder()), 409, 'idempotency-conflict')
    same(idsOf(await api.list({ idempotencyKey: key })), id, 'the order listed by the key')
  })

  await trial.check('two tenants may cancel with one key', async () => {
    const key = freshKey()
    const ours = created(await api.order(freshKey(), sampleOrder()))
    const theirs = created(await as.stranger.order(freshKey(), sampleOrder()))
    same(cancelled(await api.cancel(key, ours.id)).id, ours.id, 'id')
    same(cancelled(await as.stranger.cancel(key, theirs.id)).id, theirs.id, 'id')
  })
}

async function seen({ trial, api }: Bench): Promise<void> {
  const [key, customerId] = [freshKey(), freshCustomer()]
  const first = await api.order(key, sampleOrder({ customerId }))
  const { id } = created(first)
  const path = `/v1/orders/${id}`
  const alone = (order: string) => `{"orders":[${order}],"nextCursor":null}`
  const reads: Record<string, [read: () => Promise<Answer>, shows: (order: string) => string]> = {
    GET: [() => api.get(path), order => order],
    "the list of the customer's orders": [() => api.list({ customerId }), alone],
    'a page of one order': [() => api.list({ customerId, limit: '1' }), alone],
    'the list by its key': [() => api.list({ idempotencyKey: key }), alone],
  }
  // Read before, so that whatever remembers an answer remembers this one.
  const tags = new Map<string, string | undefined>()
  for (const [what, [read]] of Object.entries(reads)) tags.set(what, (await read()).headers.etag)
  const cancel = await api.cancel(freshKey(), id)
  for (const [what, [read, shows]] of Object.entries(reads)) {
    await trial.check(`${what} shows a cancel at once, under another ETag`, async () => {
      const answer = await read()
      same(answer.body, shows(cancel.body), 'the body')
      demand(answer.headers.etag !== tags.get(what), `an ETag other than ${tags.get(what)}`)
    })
  }

  await trial.check(
    'the ETag of the cancel is that of GET: the old one gives 200, the new one 304',
    async () => {
      const ask = (etag: string | undefined) => api.get(path, { 'if-none-match': String(etag) })
      status(await ask(first.headers.etag), 200)
      const answer = await ask(cancel.headers.etag)
      status(answer, 304)
      same(answer.headers.etag, cancel.headers.etag, 'ETag')
    },
  )
}

async function conflicts({ trial, api }: Bench): Promise<void> {
  await trial.check(
    'another key for a cancelled order is a conflict of its state, again and again',
    async () => {
      const [key, { id }] = [freshKey(), created(await api.order(freshKey(), sampleOrder()))]
      const first = await api.cancel(key, id)
      cancelled(first)
      const other = freshKey()
      for (let repeat = 1; repeat <= 2; repeat++)
        problem(await api.cancel(other, id), 409, 'order-state-conflict')
      sameReply(await api.cancel(key, id), first)
    },
  )

  await trial.check(
    'the same key for another order is a conflict, and that order stays as it is',
    async () => {
      const [key, one] = [freshKey(), created(await api.order(freshKey(), sampleOrder()))]
      const other = created(await api.order(freshKey(), sampleOrder()))
      cancelled(await api.cancel(key, one.id))
      problem(await api.cancel(key, other.id), 409, 'idempotency-conflict')
      orderOf(await api.get(`/v1/orders/${other.id}`))
      cancelled(await api.cancel(freshKey(), other.id))
      problem(await api.cancel(key, other.id), 409, 'idempotency-conflict')
    },
  )

  await trial.check('a refused cancel leaves its key free', async () => {
    const [key, done] = [freshKey(), created(await api.order(freshKey(), sampleOrder()))]
    cancelled(await api.cancel(freshKey(), done.id))
    problem(await api.cancel(key, done.id), 409, 'order-state-conflict')
    problem(await api.cancel(key, UNKNOWN), 404, 'not-found')
    problem(await api.cancel(key, done.id, JSON_TYPE, '{"a":1}'), 400, 'validation-failed')
    const { id } = created(await api.order(freshKey(), sampleOrder()))
    cancelled(await api.cancel(key, id))
  })
}

async function parallel({ trial, api }: Bench): Promise<void> {
  const cancels = async (keyOf: () => string) => {
    const { id } = created(await api.order(freshKey(), sampleOrder()))
    return Promise.all(Array.from({ length: CALLERS }, () => api.cancel(keyOf(), id)))
  }

  await trial.check(`${CALLERS} cancels at once with one key: one cancels, all get its answer`, async () => {
    const key = freshKey()
    const answers = await cancels(() => key)
    const replays = answers.filter(({ headers }) => headers['idempotent-replayed'] !== undefined)
    for (const answer of answers) {
      cancelled(answer, replays.includes(answer))
      same(answer.body, answers[0]?.body, 'the body')
      same(answer.headers.etag, answers[0]?.headers.etag, 'ETag')
    }
    same(replays.length, CALLERS - 1, 'the number of replays')
    return `${tally(answers)}, ${replays.length} replayed`
  })

  await trial.check(
    `${CALLERS} cancels at once with distinct keys: one cancels, the rest conflict`,
    async () => {
      const answers = await cancels(freshKey)
      const winners = answers.filter(answer => answer.status === 200)
      for (const answer of answers) {
        if (answer.status === 200) cancelled(answer)
        else problem(answer, 409, 'order-state-conflict')
      }
      same(winners.length, 1, 'the number of cancels')
      return tally(answers)
    },
  )
}

async function masked({ trial, api, as }: Bench): Promise<void> {
  const secret = { customerId: 'secret-customer', reference: 'secret-reference' }
  const hidden = (answer: Answer, replayed: boolean) => {
    const { customerId, reference } = cancelled(answer, replayed)
    demand(!answer.body.includes('secret'), `neither customerId nor reference, saw ${answer.body}`)
    same(`${customerId} ${reference}`, '*** ***', 'customerId and reference')
  }

  await trial.check(
    'masked: it may cancel, and reads neither then nor in the replay what it must not',
    async () => {
      const [key, { id }] = [freshKey(), created(await api.order(freshKey(), sampleOrder(secret)))]
      const first = await as.masked.cancel(key, id)
      hidden(first, false)
      const again = await as.masked.cancel(key, id)
      hidden(again, true)
      same(again.body, first.body, 'the body')
      same(again.headers.etag, first.headers.etag, 'ETag')
      same(
        cancelled(await api.cancel(key, id), true).customerId,
        secret.customerId,
        'customerId in the full view',
      )
    },
  )

  await trial.check('masked: the replay of what a full key cancelled is hidden too', async () => {
    const [key, { id }] = [freshKey(), created(await api.order(freshKey(), sampleOrder(secret)))]
    const full = await api.cancel(key, id)
    same(cancelled(full).reference, secret.reference, 'reference in the full view')
    const replay = await as.masked.cancel(key, id)
    hidden(replay, true)
    demand(
      replay.headers.etag !== full.headers.etag,
      `an ETag other than the full view's ${full.headers.etag}`,
    )
    const read = await as.masked.get(`/v1/orders/${id}`)
    same(read.body, replay.body, 'the body that it reads')
    same(read.headers.etag, replay.headers.etag, 'ETag')
  })
}

function sameReply(again: Answer, first: Answer): void {
  cancelled(again, true)
  same(again.body, first.body, 'the body of the replay')
  for (const name of ['etag', 'content-type', 'location'])
    same(again.headers[name], first.headers[name], name)
}

const idsOf = (answer: Answer) =>
  pageOf(answer)
    .orders.map(({ id }) => id)
    .join()
