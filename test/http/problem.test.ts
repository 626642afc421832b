import { describe, expect, test } from 'vitest'
import { CODES, type Code, Problem } from '../../src/errors/index.ts'
import { outcomeOf } from '../../src/http/channels.ts'
import { routeOf } from '../../src/http/head.ts'
import { problemBody, problemHeaders, retryAfterSeconds } from '../../src/http/problem.ts'
import { problemPage } from '../../src/http/problem-pages.ts'

const codes = Object.keys(CODES) as Code[]

/** The flat list of names and values as an object; no name may come twice. */
function named(headers: readonly string[]): Record<string, string> {
  const names = headers.filter((_, index) => index % 2 === 0)
  expect(new Set(names.map(name => name.toLowerCase())).size).toBe(names.length)
  return Object.fromEntries(names.map((name, index) => [name, headers[2 * index + 1] ?? '']))
}

describe('a problem', () => {
  test.each(codes)('%s has every member of its document, from the table and nowhere else', code => {
    const { status, title, detail } = CODES[code]
    expect(JSON.parse(problemBody(code, 'abc'))).toEqual({
      type: `/problems/${code}`,
      title,
      status,
      code,
      detail,
      traceId: 'abc',
    })
    expect(JSON.parse(problemPage(code))).toMatchObject({
      type: `/problems/${code}`,
      action: CODES[code].action,
    })
  })

  test.each(codes)('%s is never stored by a cache, and tells when to come back if that helps', code => {
    const headers = named(problemHeaders(new Problem(code)))
    expect(headers['Content-Type']).toBe('application/problem+json')
    expect(headers['Cache-Control']).toBe('no-store')
    const comesBack = [429, 503].includes(CODES[code].status)
    expect(headers['Retry-After']).toBe(comesBack ? '1' : undefined)
  })

  test('carries its extensions and its headers', () => {
    const problem = new Problem('concurrency-limit', { retryAfterMs: 1_001 }, { Allow: 'GET' })
    expect(named(problemHeaders(problem))).toMatchObject({ 'Retry-After': '2', Allow: 'GET' })
    expect(JSON.parse(problemBody(problem.code, '', problem.extensions))).toMatchObject({
      retryAfterMs: 1_001,
    })
  })

  test.each([
    [-5, '1'],
    [0, '1'],
    [20, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [30_000, '30'],
  ])('turns %i ms into Retry-After: %s', (ms, seconds) => expect(retryAfterSeconds(ms)).toBe(seconds))
})

describe('outcomeOf', () => {
  test.each([
    [200, 'success'],
    [201, 'success'],
    [304, 'success'],
    [400, 'client_error'],
    [404, 'client_error'],
    [409, 'client_error'],
    [431, 'client_error'],
    [429, 'rejected'],
    [503, 'rejected'],
    [504, 'rejected'],
    [499, 'client_abort'],
    [500, 'uncontrolled'],
  ] as const)('counts %i as %s', (status, outcome) => expect(outcomeOf(status)).toBe(outcome))

  test('counts no code of the table but internal as out of control', () => {
    expect(codes.filter(code => outcomeOf(CODES[code].status) === 'uncontrolled')).toEqual(['internal'])
  })
})

describe('routeOf', () => {
  test.each([
    ['/v1/orders', '/v1/orders'],
    ['/v1/orders?customerId=c', '/v1/orders'],
    ['/v1/orders/01890a5d', '/v1/orders/{id}'],
    ['/v1/orders/x?y=/z', '/v1/orders/{id}'],
    ['/v1/orders/%2F', '/v1/orders/{id}'],
    ['/problems/internal', '/problems/{code}'],
    ['/v1/orders/', 'unmatched'],
    ['/v1/orders/a/b', 'unmatched'],
    ['/V1/orders', 'unmatched'],
    ['/', 'unmatched'],
    ['*', 'unmatched'],
    ['', 'unmatched'],
    [undefined, 'unmatched'],
  ])('names %s %s', (url, route) => expect(routeOf(url)).toBe(route))
})
