import type { Bench } from '../../support/bench.ts'
import { created, matches, plain, problem, same, status } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'

/** Who may ask: credentials and scopes. */
export async function access({ trial, nobody, api, as }: Bench): Promise<void> {
  const credentials: Record<string, string | undefined> = {
    'no credential': undefined,
    'an unknown key': 'Bearer nobody-knows-this',
    'an empty key': 'Bearer ',
    'another scheme': `Basic ${Buffer.from(`${KEYS.full}:`).toString('base64')}`,
    'a key without scheme': KEYS.full,
    'a key and more': `Bearer ${KEYS.full} more`,
    'a key in other letters': `Bearer ${KEYS.full.toUpperCase()}`,
    'the beginning of a key': `Bearer ${KEYS.full.slice(0, -1)}`,
    'a very long key': `Bearer ${'k'.repeat(8_000)}`,
    'the name of a key of Object': 'Bearer __proto__',
  }
  for (const [what, authorization] of Object.entries(credentials)) {
    await trial.check(`401: ${what}`, async () => {
      const headers = authorization === undefined ? {} : { authorization }
      for (const answer of [
        await nobody.order(freshKey(), sampleOrder(), headers),
        await nobody.get('/v1/orders/01920000-0000-7000-8000-000000000000', headers),
      ]) {
        problem(answer, 401, 'unauthenticated')
        matches(answer.headers['www-authenticate'], /^Bearer\b/, 'WWW-Authenticate')
      }
    })
  }

  await trial.check('401 comes before any judgement of the request', async () => {
    problem(
      await nobody.send('POST', '/v1/orders', { 'content-type': 'text/plain' }, '{'),
      401,
      'unauthenticated',
    )
  })

  await trial.check('the scheme is named in any case', async () => {
    created(await nobody.order(freshKey(), sampleOrder(), { authorization: `bearer ${KEYS.full}` }))
  })

  await trial.check('403: a key that may only read does not write', async () => {
    const key = freshKey()
    problem(await as.reader.order(key, sampleOrder()), 403, 'forbidden')
    created(await api.order(key, sampleOrder()))
  })

  await trial.check('403: a key that may only write does not read', async () => {
    const written = await as.writer.order(freshKey(), sampleOrder())
    created(written)
    problem(await as.writer.get(String(written.headers.location)), 403, 'forbidden')
    status(await as.reader.get(String(written.headers.location)), 200)
  })

  await trial.check('403: no key, no replay: a reader does not see one', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    created(await api.order(key, request))
    problem(await as.reader.order(key, request), 403, 'forbidden')
  })

  for (const path of ['/health/live', '/health/ready', '/problems/not-found']) {
    await trial.check(`${path} needs no key`, async () => {
      const answer = await nobody.get(path)
      status(answer, 200)
      plain(answer)
      if (path.startsWith('/health')) same(answer.headers['cache-control'], 'no-store', 'Cache-Control')
    })
  }
}
