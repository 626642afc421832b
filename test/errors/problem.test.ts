import { describe, expect, test } from 'vitest'
import { CODES, type Code, Problem } from '../../src/errors/index.ts'

describe('a problem', () => {
  test.each(Object.keys(CODES) as Code[])('%s has the status of the table and nothing to reveal', code => {
    const problem = new Problem(code)
    expect(problem).toBeInstanceOf(Error)
    expect(problem.status).toBe(CODES[code].status)
    expect(problem.message).toBe(code)
    expect(problem.name).toBe('Problem')
    expect(problem.extensions).toEqual({})
    expect(problem.headers).toEqual({})
  })

  test('carries what the caller may read', () => {
    const extensions = { budgetMs: 200, stage: 'commit', committed: 'no' } as const
    const problem = new Problem('budget-exhausted', extensions, { 'Retry-After': '1' })
    expect(problem).toMatchObject({ code: 'budget-exhausted', status: 504, extensions })
    expect(problem.headers).toEqual({ 'Retry-After': '1' })
  })
})
