import type { Database } from 'better-sqlite3'
import type { Flat } from './protocol.ts'
import { SELECT_REPLY } from './statements.ts'

/** The `headers` column: what a reply needs beside its status and body. */
export function packHeaders(
  location: string | number | undefined,
  version: string | number | undefined,
): string {
  return JSON.stringify({ location, version })
}

/** Looks up the reply under (tenant, operation, key): its fields as they cross between threads, or undefined. */
export function storedReplies(db: Database): (...key: (string | number | undefined)[]) => Flat | undefined {
  const select = db.prepare(SELECT_REPLY).raw()
  return (...key) => {
    const row = select.get(...key) as [string, number, string, string] | undefined
    if (row === undefined) return undefined
    const [fingerprint, status, headers, body] = row
    const { location, version } = JSON.parse(headers) as { location: string; version: number }
    return [fingerprint, status, location, version, body]
  }
}
