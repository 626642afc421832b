import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { orderRequestSchema } from '../../src/domain/index.ts'
import { type FieldError, Problem } from '../../src/errors/index.ts'
import { parseBody, requireJson } from '../../src/http/json-body.ts'
import { problemBody } from '../../src/http/problem.ts'
import { anyRequest } from '../support/any-request.ts'

// Full of what a counter of colons could fall over.
const request = anyRequest(50, fc.stringMatching(/^[":{}[\],\\ a-cé€😀]{1,40}$/u))

const parse = (body: string | Uint8Array) => parseBody(Buffer.from(body as string), orderRequestSchema)

function problemOf(body: string | Uint8Array): Problem | undefined {
  try {
    parse(body)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

function errorsOf(body: string): readonly FieldError[] {
  const problem = problemOf(body)
  expect(problem?.code).toBe('validation-failed')
  return problem?.extensions.errors ?? []
}

function elapsedMs(act: () => void): number {
  const startMs = performance.now()
  act()
  return performance.now() - startMs
}

const VALID = { customerId: 'c', currency: 'USD', items: [{ sku: 'a', quantity: 1 }] }
const valid = (change: object) => JSON.stringify({ ...VALID, ...change })

describe('a body', () => {
  test('that is a valid request passes, however it is spaced', () => {
    fc.assert(
      fc.property(request, fc.constantFrom(0, 2, '\t'), (request, space) => {
        expect(parse(JSON.stringify(request, null, space))).toEqual(request)
      }),
      { numRuns: 300 },
    )
  })

  test('that names a member twice is malformed, at any level, and however the name is written', () => {
    const twice = fc.constantFrom<[string, string]>(
      ['{"customerId":', '{"customerId":"first","customerId":'],
      ['{"customerId":', '{"currency":"EUR","customerId":'],
      ['{"customerId":', '{"items":[{"sku":"a","quantity":1},{"sku":"b:","quantity":2}],"customerId":'],
      ['{"customerId":', '{"\\u0063ustomerId":"escaped","customerId":'],
      ['{"customerId":', '{"customerId":null,"customerId":'],
      ['{"customerId":', '{"customerId":"\\":\\\\","customerId":'],
      ['{"sku":', '{"sku":"first","sku":'],
      ['{"sku":', '{"quantity":1,"sku":'],
      ['{"sku":', '{"s\\u006bu":{"a":[{"b":1}]},"sku":'],
    )
    fc.assert(
      fc.property(request, twice, (request, [place, doubled]) => {
        // A function, since a replacement text could hold a dollar sign.
        const body = JSON.stringify(request).replace(place, () => doubled)
        expect(problemOf(body)?.code).toBe('malformed-json')
      }),
    )
  })

  test.each([
    ['"a\\":1,\\"b\\":2"'],
    ['"\\\\"'],
    ['"\\\\\\":"'],
    ['"{\\"customerId\\":\\"x\\",\\"customerId\\":\\"y\\"}"'],
    ['"\\u0022:\\u003a"'],
    [JSON.stringify('::::')],
  ])('may hold quotes, colons and whole objects in a text: %s', reference => {
    const body = `{"customerId":"c","currency":"USD","items":[{"sku":"a:b","quantity":1}],"reference":${reference}}`
    expect(parse(body).reference).toBe(JSON.parse(reference))
  })

  test.each<[string, string | Uint8Array]>([
    ['nothing', ''],
    ['white space', ' \n'],
    ['half of an object', '{"customerId":'],
    ['two objects', '{}{}'],
    ['a trailing comma', '{"customerId":"c",}'],
    ['a comment', '{}// x'],
    ['single quotes', "{'a':1}"],
    ['NaN', '{"a":NaN}'],
    ['a number of another base', '{"a":0x10}'],
    ['a byte order mark', `\ufeff${JSON.stringify(VALID)}`],
    ['a raw line break in a text', '{"a":"\n"}'],
    ['a lone continuation byte', Buffer.from([0x22, 0x80, 0x22])],
    ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ['an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['Latin-1', Buffer.from(valid({ reference: 'é' }), 'latin1')],
    ['UTF-16', Buffer.from(JSON.stringify(VALID), 'utf16le')],
    ['an unclosed nest', '['.repeat(100_000)],
  ])('of %s is malformed', (_name, body) => {
    expect(problemOf(body)?.code).toBe('malformed-json')
  })

  test.each([
    ['arrays', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['a member', valid({}).replace('"c"', `${'[['.repeat(50_000)}${']]'.repeat(50_000)}`)],
    ['an item', valid({ items: [] }).replace('[]', `[${'{"sku":'.repeat(50_000)}1${'}'.repeat(50_000)}]`)],
  ])('of 100,000 nested %s is refused without falling over', (_name, body) => {
    expect(problemOf(body)?.code).toBe('validation-failed')
  })

  test('has no field but its own: __proto__ and constructor are unknown fields like others', () => {
    for (const field of ['__proto__', 'constructor', 'toString', 'id', 'total']) {
      const member = `${JSON.stringify(field)}:{"customerId":"x"}`
      const body = valid({}).replace('{', () => `{${member},`)
      expect(errorsOf(body)).toEqual([{ pointer: `/${field}`, message: 'unknown field' }])
      const inside = valid({}).replace('[{', () => `[{${member},`)
      expect(errorsOf(inside)).toEqual([{ pointer: `/items/0/${field}`, message: 'unknown field' }])
    }
    expect(Object.prototype).not.toHaveProperty('customerId')
  })

  test('with half a surrogate pair is refused wherever it stands', () => {
    for (const text of ['\ud800', '\udc00', 'a\ud83d']) {
      expect(errorsOf(valid({ reference: text }))).toMatchObject([{ pointer: '/reference' }])
      expect(errorsOf(valid({ customerId: text }))).toMatchObject([{ pointer: '/customerId' }])
      const [error] = errorsOf(valid({ [text]: 1 }))
      expect(error).toEqual({ pointer: `/${text}`, message: 'unknown field' })
      // Still UTF-8 on the wire.
      const { errors } = JSON.parse(problemBody('validation-failed', '', { errors: [error as FieldError] }))
      expect(errors).toEqual([error])
    }
  })

  test('points at each fault as RFC 6901 writes it', () => {
    const body = {
      ...VALID,
      currency: 'usd',
      'a/b~c': 1,
      '': 2,
      items: [
        { sku: 'a', quantity: 0 },
        { sku: 'a', quantity: 1.5, 'x/y': 1 },
      ],
    }
    const pointers = errorsOf(JSON.stringify(body)).map(({ pointer }) => pointer)
    expect(new Set(pointers)).toEqual(
      new Set(['/currency', '/items/0/quantity', '/items/1/quantity', '/items/1/x~1y', '/a~1b~0c', '/']),
    )
  })

  test('points at the SKU that appears twice', () => {
    const items = ['a', 'b', 'a'].map(sku => ({ sku, quantity: 1 }))
    expect(errorsOf(valid({ items }))).toMatchObject([{ pointer: '/items/2/sku' }])
  })

  test('with thousands of faults gets a small answer that repeats nothing long, and soon', () => {
    const flood = {
      fields: JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`field-${n}`, n]))),
      long: JSON.stringify(
        Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${n}${'\u0001'.repeat(500)}`, n])),
      ),
      items: valid({ items: Array.from({ length: 3_000 }, () => ({ sku: '!', quantity: -1 })) }),
      text: valid({ customerId: 'x'.repeat(60_000), reference: '\u0000'.repeat(10_000) }),
    }
    for (const body of Object.values(flood)) {
      const errors = errorsOf(body)
      // The best of three, since a busy machine takes its own time beside.
      expect(Math.min(...[1, 2, 3].map(() => elapsedMs(() => errorsOf(body))))).toBeLessThan(50)
      expect(errors.length).toBeLessThanOrEqual(20)
      for (const { pointer, message } of errors) expect(pointer.length + message.length).toBeLessThan(400)
      expect(Buffer.byteLength(problemBody('validation-failed', '', { errors }))).toBeLessThan(34_000)
    }
  })

  test('of any JSON at all ends in a request or in one of two problems', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const problem = problemOf(JSON.stringify(value))
        expect(['malformed-json', 'validation-failed']).toContain(problem?.code)
      }),
    )
  })

  test('of any bytes at all ends in a request or in one of two problems', () => {
    const bytes = fc.uint8Array({ maxLength: 100 })
    fc.assert(
      fc.property(request, fc.nat(), bytes, (request, at, bytes) => {
        const text = Buffer.from(JSON.stringify(request))
        const place = at % text.length
        const spoilt = Buffer.concat([text.subarray(0, place), bytes, text.subarray(place)])
        expect([undefined, 'malformed-json', 'validation-failed']).toContain(problemOf(spoilt)?.code)
      }),
    )
  })
})

describe('requireJson', () => {
  const codeOf = (headers: Record<string, string>) => {
    try {
      requireJson({ 'content-length': '2', ...headers })
      return undefined
    } catch (error) {
      return (error as Problem).code
    }
  }

  test.each([
    'application/json',
    'Application/JSON',
    'application/json;charset=utf-8',
    'application/json ; charset="UTF-8"',
    'application/json; charset=utf8; profile=x',
  ])('takes %s', type => {
    expect(codeOf({ 'content-type': type })).toBeUndefined()
    expect(codeOf({ 'content-type': type, 'content-encoding': 'Identity' })).toBeUndefined()
    for (const coding of ['gzip', 'br', 'x', 'identity, gzip', '']) {
      expect(codeOf({ 'content-type': type, 'content-encoding': coding })).toBe('unsupported-media-type')
    }
  })

  test.each([
    '',
    'text/json',
    'application/json5',
    'application/jsonp;a=b',
    'application/problem+json',
    'application/json; charset=utf-16',
    'application/json; charset=latin1',
    'text/plain; application/json',
    'multipart/form-data; boundary=application/json',
  ])('refuses %j', type => expect(codeOf({ 'content-type': type })).toBe('unsupported-media-type'))

  test('misses a body that was never announced, whatever its type', () => {
    for (const length of ['0', '00', '']) expect(codeOf({ 'content-length': length })).toBe('malformed-json')
    expect(
      codeOf({ 'content-length': '0', 'transfer-encoding': 'chunked', 'content-type': 'application/json' }),
    ).toBe(undefined)
  })
})
