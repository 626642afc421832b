import { CODES, type Code } from '../errors/index.ts'

/** What stands under `/problems/{code}`: what the problem means and what the caller should do. */
export function problemPage(code: Code): string {
  const { status, title, detail, action } = CODES[code]
  return JSON.stringify({ type: `/problems/${code}`, title, status, code, detail, action })
}
