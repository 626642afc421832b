import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors/index.ts'
import { ApiKeys } from '../../src/http/auth.ts'
import type { Scope } from '../../src/http/options.ts'

const sha256 = (key: string) => createHash('sha256').update(key).digest('hex')
const KEYS = new ApiKeys([
  {
    id: 'one',
    tenant: 'acme',
    sha256: sha256('s3cret-A'),
    scopes: ['orders:read', 'orders:write'],
    view: 'full',
  },
  { id: 'two', tenant: 'globex', sha256: sha256('s3cret-B'), scopes: ['orders:read'], view: 'masked' },
])

function problemOf(authorization: string | undefined, scope: Scope = 'orders:read'): Problem | undefined {
  try {
    KEYS.authorise(authorization, scope)
    return undefined
  } catch (error) {
    return error as Problem
  }
}

describe('an API key', () => {
  test('says who is calling, for whom, what for, and with which view', () => {
    expect(KEYS.authorise('Bearer s3cret-B', 'orders:read')).toEqual({
      tenant: 'globex',
      scopes: new Set(['orders:read']),
      view: 'masked',
    })
  })

  test.each(['bearer s3cret-A', 'BEARER s3cret-A', 'Bearer   s3cret-A', 'Bearer s3cret-A '])(
    'is known in %j',
    header => {
      expect(KEYS.authorise(header, 'orders:write').tenant).toBe('acme')
    },
  )

  test.each([
    undefined,
    '',
    'Bearer',
    'Bearer ',
    's3cret-A',
    'Basic s3cret-A',
    'Bearer s3cret-a',
    'Bearer s3cret-A x',
    'Bearer s3cret-A, Bearer s3cret-B',
    'Bearer\ts3cret-A',
    'Bearer __proto__',
    'Bearer constructor',
    `Bearer ${sha256('s3cret-A')}`,
    `Bearer ${'a'.repeat(100_000)}!`,
  ])('is not known in %j', header => {
    const problem = problemOf(header)
    expect(problem).toBeInstanceOf(Problem)
    expect(problem).toMatchObject({ code: 'unauthenticated', status: 401 })
    expect(problem?.headers).toEqual({ 'WWW-Authenticate': 'Bearer realm="punctual"' })
  })

  test('without the scope is forbidden', () => {
    expect(problemOf('Bearer s3cret-B', 'orders:write')).toMatchObject({ code: 'forbidden', status: 403 })
  })
})
