import { inspect } from 'node:util'

/**
 * What keeps a thread from its work, in words of ours: known on both sides of the thread boundary, and fit to be
 * shown, because none reveals a path, SQL or a driver's message.
 */
export type Fault = 'locked' | 'full' | 'disk' | 'refused' | 'down'

export const FAULT_WORDS: Readonly<Record<Fault, string>> = {
  locked: 'another process holds the store locked',
  full: 'the disk of the store is full',
  disk: 'the disk of the store fails',
  refused: 'the store refuses its work',
  down: 'the store is being started again',
}

/** By primary result code; whatever is not here is `refused`. */
const FAULTS: Readonly<Record<string, Fault>> = {
  SQLITE_BUSY: 'locked',
  SQLITE_LOCKED: 'locked',
  SQLITE_FULL: 'full',
  SQLITE_IOERR: 'disk',
  SQLITE_CORRUPT: 'disk',
  SQLITE_NOTADB: 'disk',
  SQLITE_CANTOPEN: 'disk',
}

/** What one row can be guilty of; the rest of its group then goes on without it. */
const ROW_ERRORS = ['SQLITE_CONSTRAINT', 'SQLITE_TOOBIG', 'SQLITE_MISMATCH', 'SQLITE_RANGE']

/** The store's fault, or undefined when the error belongs to the values of one row. */
export function faultOf(error: unknown): Fault | undefined {
  const code = codeOf(error)
  // Values that cannot be bound are refused by the driver, with a code that is not SQLite's or none.
  if (!code.startsWith('SQLITE_')) return undefined
  const primary = /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? code
  return ROW_ERRORS.includes(primary) ? undefined : (FAULTS[primary] ?? 'refused')
}

/** What keeps a store from being opened, if it may go by itself: a lock, a full disk, a disk that fails. */
export function passingFaultOf(error: unknown): Fault | undefined {
  const code = codeOf(error)
  // Without room for its shared memory SQLite calls it an I/O error.
  if (code === 'ENOSPC' || code === 'SQLITE_IOERR_SHMSIZE') return 'full'
  return /^SQLITE_(BUSY|LOCKED|FULL|IOERR)/.test(code) ? faultOf(error) : undefined
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** One line for the operator's log, whatever was thrown; never for a caller. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : inspect(error, { customInspect: false })
  const code = codeOf(error)
  return `${message.startsWith(code) ? '' : `${code}: `}${message}`.replaceAll(/\s+/g, ' ')
}
