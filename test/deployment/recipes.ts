import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import DEFAULTS from '../../config/default.json' with { type: 'json' }
import PACKAGE from '../../package.json' with { type: 'json' }

export const ROOT = join(import.meta.dirname, '../..')
export { DEFAULTS, PACKAGE }

export function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** The documents of a YAML file. Their shape is theirs: a member that is missing fails the test that asks for it. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export function documentsOf(path: string): any[] {
  return parseAllDocuments(textOf(path)).map(document => {
    for (const error of document.errors) throw error
    return document.toJS()
  })
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000 }

/** `250ms`, `30s` in milliseconds. */
export function inMs(duration: string | undefined): number {
  const [, amount, unit = ''] = /^(\d+)(ms|s)$/.exec(duration ?? '') ?? []
  return Number(amount) * (UNIT_MS[unit] ?? Number.NaN)
}
