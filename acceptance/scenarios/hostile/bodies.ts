import type { Bench } from '../../support/bench.ts'
import { answered, created, problem } from '../../support/expect.ts'
import { promptly } from '../../support/promptly.ts'
import { freshKey, orderBytes, sampleOrder, sampleText } from '../../support/samples.ts'

const LIMIT_MS = 50
const OVERSIZED_BYTES = 4 * 1024 * 1024

const text = sampleText('', '')
const nested = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth)
/** The sample with its reference replaced by these bytes. */
const raw = (...bytes: number[]) => {
  const [before = '', after = ''] = text.split('ref-9')
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])
}

const BODIES: Record<string, [body: string | Uint8Array, ...codes: string[]]> = {
  'nothing at all': ['', 'malformed-json'],
  'white space': [' \r\n\t', 'malformed-json'],
  'an opening brace': ['{', 'malformed-json'],
  'half an order': [text.slice(0, 40), 'malformed-json'],
  'an order and a brace more': [`${text}}`, 'malformed-json'],
  'two orders': [text + text, 'malformed-json'],
  'a member without value': ['{"customerId":}', 'malformed-json'],
  'a comma too many': [sampleText('"}', '",}'), 'malformed-json'],
  'single quotes': [text.replaceAll('"', "'"), 'malformed-json'],
  'bare names': ['{customerId:"c"}', 'malformed-json'],
  'a comment': [`/* hello */${text}`, 'malformed-json'],
  NaN: [sampleText(':2}', ':NaN}'), 'malformed-json'],
  Infinity: [sampleText(':2}', ':Infinity}'), 'malformed-json'],
  'a hexadecimal number': [sampleText(':2}', ':0x2}'), 'malformed-json'],
  'a number with a leading zero': [sampleText(':2}', ':02}'), 'malformed-json'],
  'a number with a leading plus': [sampleText(':2}', ':+2}'), 'malformed-json'],
  'a line feed inside a string': [sampleText('ref-9', 'a\nb'), 'malformed-json'],
  'an escape that does not exist': [sampleText('ref-9', '\\x41'), 'malformed-json'],
  'a NUL after the order': [`${text}\u0000`, 'malformed-json'],
  // RFC 8259 calls these JSON, so either of the two codes says truly what is wrong with them.
  null: ['null', 'malformed-json', 'validation-failed'],
  true: ['true', 'malformed-json', 'validation-failed'],
  'a number': ['42', 'malformed-json', 'validation-failed'],
  'a string': ['"order"', 'malformed-json', 'validation-failed'],
  'a list': ['[]', 'malformed-json', 'validation-failed'],
  'a list of an order': [`[${text}]`, 'malformed-json', 'validation-failed'],

  'a member twice': [sampleText('{"cust', '{"currency":"USD","cust'), 'malformed-json'],
  'a member twice, alike': [sampleText('{"cust', '{"currency":"EUR","cust'), 'malformed-json'],
  'a member twice, once escaped': [sampleText('{"cust', '{"curr\\u0065ncy":"USD","cust'), 'malformed-json'],
  'a member of an item twice': [sampleText('"quantity":2', '"quantity":2,"quantity":3'), 'malformed-json'],
  'an unknown member twice': [
    sampleText('{"cust', '{"x":1,"x":1,"cust'),
    'malformed-json',
    'validation-failed',
  ],
  'a member called __proto__ twice': [
    sampleText('{"cust', '{"__proto__":1,"__proto__":1,"cust'),
    'malformed-json',
    'validation-failed',
  ],

  '5,000 lists in each other': [nested('[', ']', 5_000), 'malformed-json', 'validation-failed'],
  '5,000 objects in each other': [
    `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
    'malformed-json',
    'validation-failed',
  ],
  '5,000 lists as the items': [
    sampleText('[{"sku":"SKU-text","quantity":2}]', nested('[', ']', 5_000)),
    'malformed-json',
    'validation-failed',
  ],
  '5,000 lists as an unknown member': [
    sampleText('{"cust', `{"x":${nested('[', ']', 5_000)},"cust`),
    'malformed-json',
    'validation-failed',
  ],
  '30,000 lists that never close': ['['.repeat(30_000), 'malformed-json'],
  '4,000 unknown members': [
    `{${Array.from({ length: 4_000 }, (_, i) => `"m${i}":1`).join()}}`,
    'validation-failed',
  ],
  'a number of 30,000 digits': [sampleText(':2}', `:${'9'.repeat(30_000)}}`), 'validation-failed'],
  'a string of 30,000 backslashes': [sampleText('ref-9', '\\\\'.repeat(15_000)), 'validation-failed'],
  'a customerId made to be matched slowly': [
    sampleText('customer-7', `${'a'.repeat(30_000)}!`),
    'validation-failed',
  ],

  'a byte that is not UTF-8': [raw(0xff), 'malformed-json'],
  'a continuation byte alone': [raw(0x80), 'malformed-json'],
  'a character cut short': [raw(0xe2, 0x82), 'malformed-json'],
  'an overlong slash': [raw(0xc0, 0xaf), 'malformed-json'],
  'a surrogate written in UTF-8': [raw(0xed, 0xa0, 0x80), 'malformed-json'],
  'a character beyond Unicode': [raw(0xf4, 0x90, 0x80, 0x80), 'malformed-json'],
  latin1: [Buffer.from(sampleText('ref-9', 'é'), 'latin1'), 'malformed-json'],
  'UTF-16': [Buffer.from(text, 'utf16le'), 'malformed-json'],
  'bytes that are nothing': [Buffer.from([0, 1, 2, 3, 0xfe, 0xff]), 'malformed-json'],
  'something gzipped': [Buffer.from('1f8b0800000000000003', 'hex'), 'malformed-json'],
}

/** Bodies. Each is refused within 50 ms, and its key then makes an order as if nothing had been. */
export async function bodies({ trial, api, server }: Bench): Promise<void> {
  for (const [what, [body, ...codes]] of Object.entries(BODIES)) {
    await trial.check(`a body of ${what}`, async () => {
      const key = freshKey()
      const ask = async () => [await api.order(key, body)]
      await promptly([0, LIMIT_MS], ask, answer => problem(answer, 400, ...codes))
      created(await api.order(key, sampleOrder()))
    })
  }

  const oversized: Record<string, (key: string) => Buffer> = {
    'that says it is too large, and is': key => orderBytes(key, 'r'.repeat(OVERSIZED_BYTES)),
    'that says it is too large, and never comes': key =>
      orderBytes(key, '', { 'content-length': '99999999999' }),
    'that grows too large in chunks': key =>
      Buffer.concat([
        orderBytes(key, '', { 'transfer-encoding': 'chunked' }),
        ...Array.from({ length: 64 }, () => Buffer.from(`10000\r\n${' '.repeat(0x10000)}\r\n`)),
        Buffer.from('0\r\n\r\n'),
      ]),
  }
  for (const [what, bytes] of Object.entries(oversized)) {
    await trial.check(`a body ${what}`, async () => {
      const key = freshKey()
      const ask = async () => {
        const connection = await trial.connect(server.port)
        connection.send(bytes(key))
        return [answered(await connection.read())]
      }
      await promptly([0, LIMIT_MS], ask, answer => problem(answer, 413, 'payload-too-large'))
      created(await api.order(key, sampleOrder()))
    })
  }

  await trial.check('a body in chunks, even of one byte each, is a body', async () => {
    const connection = await trial.connect(server.port)
    const chunks = [...JSON.stringify(sampleOrder())].map(character => `1\r\n${character}\r\n`)
    connection.send(orderBytes(freshKey(), '', { 'transfer-encoding': 'chunked' }))
    for (const chunk of chunks) connection.send(chunk)
    connection.send('0\r\n\r\n')
    created(answered(await connection.read()))
  })
}
