import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors/index.ts'
import { idempotencyKey } from '../../src/http/idempotency-key.ts'

/** A request with these header lines, joined and told apart by Node.js itself. */
function requestWith(...lines: string[]): IncomingMessage {
  const req = new IncomingMessage(new Socket())
  const parsed = req as unknown as { _addHeaderLines(lines: string[], count: number): void }
  parsed._addHeaderLines(
    lines.flatMap(line => ['Idempotency-Key', line]),
    2 * lines.length,
  )
  return req
}

function codeOf(...lines: string[]): string | undefined {
  try {
    idempotencyKey(requestWith(...lines))
    return undefined
  } catch (error) {
    return error instanceof Problem ? error.code : String(error)
  }
}

const printable = fc.stringMatching(/^[ -~]{1,255}$/)

describe('an idempotency key', () => {
  test('is the same key quoted and bare', () => {
    fc.assert(
      fc.property(printable, key => {
        const quoted = `"${key.replace(/["\\]/g, '\\$&')}"`
        expect(idempotencyKey(requestWith(quoted))).toBe(key)
        if (!key.startsWith('"')) expect(idempotencyKey(requestWith(key))).toBe(key)
      }),
    )
  })

  test('is missing without the header and invalid with an empty one', () => {
    expect(codeOf()).toBe('idempotency-key-missing')
    expect(codeOf('')).toBe('idempotency-key-invalid')
    expect(codeOf('""')).toBe('idempotency-key-invalid')
  })

  test('has 1 to 255 characters, quotes and escapes not counted', () => {
    for (const longest of ['k'.repeat(255), `"${'k'.repeat(255)}"`, `"${'\\"'.repeat(255)}"`]) {
      expect(codeOf(longest)).toBeUndefined()
    }
    for (const tooLong of ['k'.repeat(256), `"${'k'.repeat(256)}"`, `"${'\\\\'.repeat(256)}"`]) {
      expect(codeOf(tooLong)).toBe('idempotency-key-invalid')
    }
  })

  test.each(['"open', '"', '"a"b"', '"a\\b"', '"a\\"', '"a";p=1', '"a", "b"', '"a" '])(
    'is refused when its quoting is broken: %s',
    header => expect(codeOf(header)).toBe('idempotency-key-invalid'),
  )

  test('is printable ASCII and nothing else', () => {
    fc.assert(
      fc.property(
        printable,
        fc.constantFrom('\t', '\x7f', '\x80', 'é', '\u2028', '\0'),
        fc.nat(),
        (key, bad, at) => {
          const place = at % (key.length + 1)
          const spoilt = key.slice(0, place) + bad + key.slice(place)
          expect(codeOf(spoilt)).toBe('idempotency-key-invalid')
          expect(codeOf(`"${spoilt.replace(/["\\]/g, '\\$&')}"`)).toBe('idempotency-key-invalid')
        },
      ),
    )
  })

  test('comes once: two lines are refused, even the same key twice or an empty one', () => {
    for (const lines of [
      ['a', 'a'],
      ['a', 'b'],
      ['"a"', '"a"'],
      ['a', ''],
      ['', ''],
      ['a', 'b', 'c'],
    ]) {
      expect(codeOf(...lines)).toBe('idempotency-key-invalid')
    }
  })

  test('may hold a comma, which is no second key', () => {
    for (const key of ['a, b', 'a,b', ', ']) expect(idempotencyKey(requestWith(key))).toBe(key)
  })

  test('of any text at all is a key or a problem, in no time', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 300 }), { maxLength: 3 }), lines => {
        expect([undefined, 'idempotency-key-missing', 'idempotency-key-invalid']).toContain(codeOf(...lines))
      }),
    )
    expect(codeOf(`"${'\\"'.repeat(50_000)}`)).toBe('idempotency-key-invalid')
  })
})
