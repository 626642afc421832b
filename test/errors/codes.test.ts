import { describe, expect, test } from 'vitest'
import { CODES, type Code } from '../../src/errors/index.ts'

/** The status table of the contract, row by row. `tenant-limit` comes with the tenants' share. */
const CONTRACT: readonly (readonly [number, readonly string[]])[] = [
  [
    400,
    [
      'malformed-json',
      'validation-failed',
      'unknown-sku',
      'idempotency-key-missing',
      'idempotency-key-invalid',
    ],
  ],
  [401, ['unauthenticated']],
  [403, ['forbidden']],
  [404, ['not-found']],
  [405, ['method-not-allowed']],
  [409, ['idempotency-conflict', 'order-state-conflict']],
  [413, ['payload-too-large']],
  [415, ['unsupported-media-type']],
  [429, ['concurrency-limit']],
  [500, ['internal']],
  [503, ['pricing-unavailable', 'store-unavailable', 'warming-up', 'shutting-down']],
  [504, ['budget-exhausted']],
]

/** What the HTTP parser refuses before any route is reached; beside the contract's table. */
const PROTOCOL: readonly (readonly [number, readonly string[]])[] = [
  [400, ['malformed-request']],
  [408, ['request-timeout']],
  [431, ['headers-too-large']],
]

const codes = Object.keys(CODES) as Code[]

describe('the table of codes', () => {
  test('has exactly the codes and statuses of the contract and of the protocol', () => {
    const expected = [...CONTRACT, ...PROTOCOL].flatMap(([status, names]) =>
      names.map(code => [code, status]),
    )
    expect(Object.fromEntries(codes.map(code => [code, CODES[code].status]))).toEqual(
      Object.fromEntries(expected),
    )
  })

  test('has one 500: the only status that counts against the error budget', () => {
    expect(codes.filter(code => CODES[code].status === 500)).toEqual(['internal'])
  })

  test('gives no two codes the same title', () => {
    expect(new Set(codes.map(code => CODES[code].title)).size).toBe(codes.length)
  })

  test.each(codes)('%s has a name fit for a path, a title, a detail and an action', code => {
    const { title, detail, action } = CODES[code]
    expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/)
    expect(title).toMatch(/^[A-Z][\w ]+$/)
    expect(detail).toMatch(/^[A-Z].{10,}\.$/)
    expect(action).toMatch(/^[A-Z].{10,}\.$/)
  })

  test.each(codes)('%s reveals nothing internal', code => {
    const internal =
      /\b(sql|sqlite|postgres\w*|redis|nats|databases?|tables?|rows?|disk|files?|threads?|workers?|queues?|cache|breaker|loop|timers?|undici|express|node|sockets?|errno|exceptions?|stack|null|undefined|localhost)\b|127\.|https?:|[\\{}<>@]|\w\/\w+\/|\.[jt]s\b/i
    const { title, detail, action } = CODES[code]
    expect(title).not.toMatch(internal)
    expect(detail).not.toMatch(internal)
    expect(action).not.toMatch(internal)
  })
})
