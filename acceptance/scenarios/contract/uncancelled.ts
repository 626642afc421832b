import type { Bench } from '../../support/bench.ts'
import { requestBytes } from '../../support/connection.ts'
import { answered, cancelled, created, orderOf, pointers, problem, same } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** POST /v1/orders/{id}/cancel: who and what is refused, and that the order then stands as it was made. */
export async function uncancelled(bench: Bench): Promise<void> {
  await refused(bench)
  await bodies(bench)
}

async function refused({ trial, api, as, nobody }: Bench): Promise<void> {
  const theirs = created(await as.stranger.order(freshKey(), sampleOrder()))
  for (const [what, id] of Object.entries({
    'an unknown id': '01920000-0000-7000-8000-000000000000',
    "another tenant's order": theirs.id,
    'a UUID of another version': '3b241101-e2bb-4255-8caf-4136c566a962',
    'no UUID': 'order-1',
    'the name __proto__': '__proto__',
    'an encoded NUL': '%00',
    SQL: "'%20OR%201=1%20--",
    'an empty id': '',
  })) {
    await trial.check(`a cancel of ${what} is not found`, async () => {
      problem(await api.cancel(freshKey(), id), 404, 'not-found')
    })
  }

  await trial.check("another tenant's order stays as it is, and theirs to cancel", async () => {
    orderOf(await as.stranger.get(`/v1/orders/${theirs.id}`))
    cancelled(await as.stranger.cancel(freshKey(), theirs.id))
    problem(await api.cancel(freshKey(), theirs.id), 404, 'not-found')
  })

  const { id } = created(await api.order(freshKey(), sampleOrder()))
  const path = `/v1/orders/${id}/cancel`
  await trial.check('a cancel needs a key that may write', async () => {
    problem(await as.reader.cancel(freshKey(), id), 403, 'forbidden')
    problem(await nobody.cancel(freshKey(), id), 401, 'unauthenticated')
    problem(await nobody.send('POST', path, { 'content-type': 'text/plain' }, '{'), 401, 'unauthenticated')
    orderOf(await api.get(`/v1/orders/${id}`))
  })

  await trial.check('a cancel without an Idempotency-Key is refused', async () => {
    problem(await api.send('POST', path), 400, 'idempotency-key-missing')
  })

  for (const [what, key] of Object.entries<string | string[]>({
    'of 256 characters': 'k'.repeat(256),
    'that opens a quote and does not close it': '"open',
    'quoted and empty': '""',
    'given twice': ['key-1', 'key-2'],
  })) {
    await trial.check(`a cancel with a key ${what} is refused`, async () => {
      problem(await api.cancel('', id, { 'idempotency-key': key }), 400, 'idempotency-key-invalid')
    })
  }

  await trial.check('after all those refusals the order stands as it was made', async () => {
    orderOf(await api.get(`/v1/orders/${id}`))
  })
}

async function bodies({ trial, api, server }: Bench): Promise<void> {
  for (const [what, headers, body] of [
    ['an empty object', JSON_TYPE, '{}'],
    ['an empty object and white space', JSON_TYPE, ' { }\n'],
    ['a type and no body', JSON_TYPE, undefined],
    ['a type that is not ours and no body', { 'content-type': 'text/plain' }, undefined],
  ] as const) {
    await trial.check(`a cancel may have ${what}`, async () => {
      const { id } = created(await api.order(freshKey(), sampleOrder()))
      cancelled(await api.cancel(freshKey(), id, headers, body))
    })
  }

  await trial.check('a cancel may say nothing of a body at all', async () => {
    const { id } = created(await api.order(freshKey(), sampleOrder()))
    const connection = await trial.connect(server.port)
    const headers = { authorization: `Bearer ${KEYS.full}`, 'idempotency-key': freshKey() }
    connection.send(requestBytes('POST', `/v1/orders/${id}/cancel`, headers))
    cancelled(answered(await connection.read()))
  })

  const { id } = created(await api.order(freshKey(), sampleOrder()))
  for (const [body, ...codes] of [
    ['{"a":1}', 'validation-failed'],
    ['{"status":"cancelled"}', 'validation-failed'],
    ['{"__proto__":1}', 'validation-failed'],
    ['[]', 'malformed-json', 'validation-failed'],
    ['null', 'malformed-json', 'validation-failed'],
    ['""', 'malformed-json', 'validation-failed'],
    ['{', 'malformed-json'],
    [' ', 'malformed-json'],
  ]) {
    await trial.check(`a cancel with the body ${body} is refused`, async () => {
      const answer = await api.cancel(freshKey(), id, JSON_TYPE, body)
      problem(answer, 400, ...codes)
      if (body === '{"a":1}') same(pointers(answer).join(), '/a', 'the pointers')
    })
  }

  await trial.check('a cancel with a body of another type is refused', async () => {
    for (const type of ['text/plain', 'application/xml', ''])
      problem(await api.cancel(freshKey(), id, { 'content-type': type }, '{}'), 415, 'unsupported-media-type')
    problem(await api.cancel(freshKey(), id, {}, '{}'), 415, 'unsupported-media-type')
  })

  await trial.check('a cancel with a body that is too large is refused', async () => {
    problem(await api.cancel(freshKey(), id, JSON_TYPE, ' '.repeat(100_000)), 413, 'payload-too-large')
  })

  await trial.check('after all those bodies the order stands as it was made', async () => {
    orderOf(await api.get(`/v1/orders/${id}`))
  })
}
