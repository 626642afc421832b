import type { Bench } from '../../support/bench.ts'
import { requestBytes } from '../../support/connection.ts'
import { answered, created, demand, problem } from '../../support/expect.ts'
import { KEYS } from '../../support/keys.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'

/** Idempotency-Key: which values are keys, and which of them are the same key. */
export async function keys({ trial, api, server }: Bench): Promise<void> {
  await trial.check('no Idempotency-Key', async () => {
    const answer = await api.send('POST', '/v1/orders', { 'content-type': 'application/json' }, '{}')
    problem(answer, 400, 'idempotency-key-missing')
  })

  const invalid: Record<string, string | string[]> = {
    'of 256 characters': 'k'.repeat(256),
    'quoted, of 256 characters': `"${'k'.repeat(256)}"`,
    'quoted and empty': '""',
    'that opens a quote and does not close it': '"open',
    'of one quote': '"',
    'quoted, with more behind it': '"key" more',
    'quoted, with a parameter': '"key";a=1',
    'quoted, with a quote inside': '"a"b"',
    'quoted, with an escape that does not exist': '"a\\n"',
    'quoted, ending in a backslash': '"a\\"',
    'with a tab inside': 'a\tb',
    'given twice': ['key-1', 'key-2'],
    'given twice, quoted': ['"key-1"', '"key-2"'],
    'given twice, the same': ['key-1', 'key-1'],
  }
  for (const [what, key] of Object.entries(invalid)) {
    await trial.check(`a key ${what} is invalid`, async () => {
      const answer = await api.order('', sampleOrder(), { 'idempotency-key': key })
      problem(answer, 400, 'idempotency-key-invalid')
    })
  }

  await trial.check('an empty key is missing or invalid', async () => {
    problem(await api.order('', sampleOrder()), 400, 'idempotency-key-missing', 'idempotency-key-invalid')
  })

  for (const [what, byte] of Object.entries({
    NUL: 0,
    SOH: 1,
    ESC: 27,
    DEL: 127,
    'byte é': 0xe9,
    'byte ÿ': 0xff,
  })) {
    await trial.check(`a key with ${what} inside is invalid`, async () => {
      const headers = {
        authorization: `Bearer ${KEYS.full}`,
        'content-type': 'application/json',
        'idempotency-key': `a${String.fromCharCode(byte)}b`,
      }
      const connection = await trial.connect(server.port)
      connection.send(requestBytes('POST', '/v1/orders', headers, JSON.stringify(sampleOrder())))
      // Control characters already break the header field itself, before anyone asks what the key means.
      problem(answered(await connection.read()), 400, 'idempotency-key-invalid', 'malformed-request')
    })
  }

  const valid: Record<string, [key: string, sameKey: string]> = {
    'bare and quoted are one key': ['plain-1', '"plain-1"'],
    'quoted and bare are one key': ['"plain-2"', 'plain-2'],
    'white space around it is not part of it': ['plain-3', '  plain-3 '],
    'of 1 character': ['k', '"k"'],
    'of 255 characters': ['k'.repeat(255), `"${'k'.repeat(255)}"`],
    'with spaces inside': ['two words', '"two words"'],
    'with a comma inside': ['one, two', '"one, two"'],
    'called __proto__': ['__proto__', '"__proto__"'],
    'called constructor': ['constructor', 'constructor'],
    'called hasOwnProperty': ['hasOwnProperty', '"hasOwnProperty"'],
    'that looks like SQL': ["'; DROP TABLE orders; --", "'; DROP TABLE orders; --"],
    'that looks like a path': ['../../etc/passwd', '../../etc/passwd'],
    'that looks percent-encoded': ['%00%2e%2e', '%00%2e%2e'],
    'with quotes escaped': ['"a\\"b\\\\c"', '"a\\"b\\\\c"'],
    'called null': ['null', '"null"'],
  }
  for (const [what, [key, sameKey]] of Object.entries(valid)) {
    await trial.check(`a valid key: ${what}`, async () => {
      const request = sampleOrder()
      const first = created(await api.order(key, request))
      const again = created(await api.order(sameKey, request), true)
      demand(again.id === first.id, `order ${first.id} again, saw ${again.id}`)
      problem(await api.order(key, sampleOrder({ currency: 'USD' })), 409, 'idempotency-conflict')
    })
  }

  await trial.check('keys that differ in case are two keys', async () => {
    const key = freshKey()
    const lower = created(await api.order(key, sampleOrder()))
    const upper = created(await api.order(key.toUpperCase(), sampleOrder()))
    demand(lower.id !== upper.id, 'two orders')
  })
}
