import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors/index.ts'
import { listQuery } from '../../src/http/list-query.ts'

function pointersOf(query: string): readonly string[] {
  try {
    listQuery(`/v1/orders${query}`)
  } catch (error) {
    if (error instanceof Problem) return error.extensions.errors?.map(({ pointer }) => pointer) ?? []
    throw error
  }
  return []
}

describe('the query of a list', () => {
  test('is read with its defaults, decoded, the key quoted or bare', () => {
    const asked = { idempotencyKey: undefined, limit: 20, before: undefined }
    expect(listQuery('/v1/orders?customerId=a%3Ab')).toEqual({ ...asked, customerId: 'a:b' })
    for (const key of ['k+1', '%22k%201%22', 'k%201']) {
      expect(listQuery(`/v1/orders?idempotencyKey=${key}`).idempotencyKey).toBe('k 1')
    }
  })

  test.each([
    ['', '/query/customerId'],
    ['?', '/query/customerId'],
    ['?customerId=', '/query/customerId'],
    ['?customerId=a&customerId=b', '/query/customerId'],
    ['?customerId=a&limit=0', '/query/limit'],
    ['?customerId=a&limit=101', '/query/limit'],
    ['?customerId=a&limit=1e1', '/query/limit'],
    ['?customerId=a&cursor=x', '/query/cursor'],
    ['?idempotencyKey=%0A', '/query/idempotencyKey'],
    ['?customerId=a&__proto__=b', '/query/__proto__'],
    ['?customerId=a&constructor=b', '/query/constructor'],
    ['?customerid=a&customerId=b', '/query/customerid'],
    ['??customerId=a&customerId=b', '/query/?customerId'],
  ])('%j is refused at %s', (query, pointer) => {
    expect(pointersOf(query)).toEqual([pointer])
  })

  test('with several mistakes is told of each', () => {
    expect(pointersOf('?customerID=a&limit=0&cursor=x').toSorted()).toEqual([
      '/query/cursor',
      '/query/customerID',
      '/query/limit',
    ])
  })

  test('of thousands of parameters is refused at the ninth', () => {
    const names = Array.from({ length: 4_000 }, (_, n) => `n${n}=`)
    expect(pointersOf(`?${names.join('&')}`)).toEqual(['/query/n8'])
    expect(pointersOf(`?${'customerId=a&'.repeat(4_000)}`)).toEqual(['/query/customerId'])
  })
})
