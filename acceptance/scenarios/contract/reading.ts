import type { Bench } from '../../support/bench.ts'
import { created, demand, orderOf, plain, problem, same, status } from '../../support/expect.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'

/** GET and HEAD /v1/orders/{id}: the order, its validator, and who may not see it. */
export async function reading({ trial, api, as }: Bench): Promise<void> {
  const first = await api.order(freshKey(), sampleOrder({ reference: 'to be read' }))
  const path = String(first.headers.location)
  const etag = String(first.headers.etag)

  await trial.check('GET gives the order as it was answered', async () => {
    const answer = await api.get(path)
    status(answer, 200)
    plain(answer)
    orderOf(answer)
    same(answer.body, first.body, 'the body')
    same(answer.headers.etag, etag, 'ETag')
  })

  await trial.check('GET finds an order at once after its 201', async () => {
    for (let round = 0; round < 20; round++) {
      const { id } = created(await api.order(freshKey(), sampleOrder()))
      status(await api.get(`/v1/orders/${id}`), 200)
    }
  })

  await trial.check('HEAD gives the headers of GET and no body', async () => {
    const [get, head] = [await api.get(path), await api.send('HEAD', path)]
    status(head, 200)
    plain(head)
    same(head.body, '', 'the body')
    for (const name of ['etag', 'content-type', 'content-length'])
      same(head.headers[name], get.headers[name], name)
  })

  for (const [what, value] of Object.entries({
    'the same tag': etag,
    'a weak form of it': `W/${etag}`,
    'it among others': `"other", ${etag}`,
    anything: '*',
  })) {
    await trial.check(`If-None-Match with ${what} gives 304`, async () => {
      for (const method of ['GET', 'HEAD']) {
        const answer = await api.send(method, path, { 'if-none-match': value })
        status(answer, 304)
        plain(answer)
        same(answer.body, '', 'the body')
        same(answer.headers.etag, etag, 'ETag')
      }
    })
  }

  await trial.check('If-None-Match with another tag gives 200', async () => {
    status(await api.get(path, { 'if-none-match': '"other"' }), 200)
  })

  await trial.check("another tenant's order does not exist, tag or not", async () => {
    problem(await as.stranger.get(path), 404, 'not-found')
    problem(await as.stranger.get(path, { 'if-none-match': '*' }), 404, 'not-found')
    problem(await as.stranger.get(path, { 'if-none-match': etag }), 404, 'not-found')
  })

  await trial.check("nothing tells another tenant's order from one that is not there", async () => {
    const strip = (body: string) => body.replaceAll(/[0-9a-f]{32}/g, '')
    const foreign = await as.stranger.get(path)
    const absent = await as.stranger.get('/v1/orders/01920000-0000-7000-8000-000000000000')
    same(strip(foreign.body), strip(absent.body), 'the body')
    same(Object.keys(foreign.headers).sort().join(), Object.keys(absent.headers).sort().join(), 'the headers')
  })

  for (const [what, id] of Object.entries({
    'an unknown id': '01920000-0000-7000-8000-000000000000',
    'a UUID of another version': '3b241101-e2bb-4255-8caf-4136c566a962',
    'no UUID': 'order-1',
    'the name __proto__': '__proto__',
    'percent-encoded dots': '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
    'an encoded NUL': '%00',
    SQL: "'%20OR%201=1%20--",
    'a very long id': 'a'.repeat(4_000),
  })) {
    await trial.check(`GET of ${what} is not found`, async () => {
      problem(await api.get(`/v1/orders/${id}`), 404, 'not-found')
    })
  }

  for (const id of ['%', '%ff', '%c0%ae', '%zz']) {
    await trial.check(`GET of an id that is no text (${id}) is refused, not a fault`, async () => {
      const answer = await api.get(`/v1/orders/${id}`)
      if (answer.status === 404) problem(answer, 404, 'not-found')
      else problem(answer, 400, 'malformed-request', 'validation-failed')
    })
  }

  await trial.check('HEAD of an unknown order is 404 without a body', async () => {
    const answer = await api.send('HEAD', '/v1/orders/01920000-0000-7000-8000-000000000000')
    status(answer, 404)
    same(answer.body, '', 'the body')
  })

  await trial.check('Request-Budget-Ms is judged on reads too', async () => {
    problem(await api.get(path, { 'request-budget-ms': 'soon' }), 400, 'validation-failed')
    status(await api.get(path, { 'request-budget-ms': '150' }), 200)
  })

  await masked({ trial, api, as })
}

/** A key with the masked view never learns the personal fields, whichever way it asks. */
async function masked({ trial, api, as }: Pick<Bench, 'trial' | 'api' | 'as'>): Promise<void> {
  const secret = { customerId: 'secret-customer', reference: 'secret-reference' }
  const hidden = (body: string) => {
    demand(!body.includes('secret'), `neither customerId nor reference, saw ${body}`)
    const { customerId, reference } = JSON.parse(body) as Record<string, unknown>
    same(customerId, '***', 'customerId')
    same(reference, '***', 'reference')
  }

  await trial.check('masked: its own POST, the replay and GET hide the fields, alike', async () => {
    const [key, request] = [freshKey(), sampleOrder(secret)]
    const post = await as.masked.order(key, request)
    created(post)
    const replay = await as.masked.order(key, request)
    created(replay, true)
    const get = await as.masked.get(String(post.headers.location))
    status(get, 200)
    orderOf(get)
    for (const { body, headers } of [post, replay, get]) {
      hidden(body)
      same(body, post.body, 'the body')
      same(headers.etag, post.headers.etag, 'ETag')
    }
  })

  await trial.check('masked: the order of another key is hidden too, and has another ETag', async () => {
    const [key, request] = [freshKey(), sampleOrder(secret)]
    const full = await api.order(key, request)
    same(created(full).customerId, secret.customerId, 'customerId in the full view')
    const replay = await as.masked.order(key, request)
    created(replay, true)
    const get = await as.masked.get(String(full.headers.location))
    for (const { body, headers } of [replay, get]) {
      hidden(body)
      demand(headers.etag !== full.headers.etag, `an ETag other than the full view's ${full.headers.etag}`)
    }
    status(
      await as.masked.get(String(full.headers.location), { 'if-none-match': String(full.headers.etag) }),
      200,
    )
  })

  await trial.check('masked: the full view stays whole after masked reads', async () => {
    const [key, request] = [freshKey(), sampleOrder(secret)]
    const post = await as.masked.order(key, request)
    await as.masked.get(String(post.headers.location))
    for (const answer of [await api.order(key, request), await api.get(String(post.headers.location))]) {
      const order = orderOf(answer)
      same(order.customerId, secret.customerId, 'customerId')
      same(order.reference, secret.reference, 'reference')
    }
  })

  await trial.check('masked: a conflict tells nothing of the first request', async () => {
    const key = freshKey()
    await api.order(key, sampleOrder(secret))
    const answer = await as.masked.order(key, sampleOrder())
    problem(answer, 409, 'idempotency-conflict')
    demand(!answer.body.includes('secret'), `nothing of the first request, saw ${answer.body}`)
  })
}
