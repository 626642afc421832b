import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { codeOf, faultOf, reasonOf } from './faults.ts'
import { MigrationError, migrate } from './migrations.ts'
import type { ConnectionOptions } from './protocol.ts'

/**
 * The writer's checkpoint copies this many pages (8 MiB) from the log into the database after the commit that
 * passes it. Measured on two cores with 200,000 orders there, 32 in a group:
 *
 *   pages                          1,000    2,000    4,000   16,000
 *   orders/s                      13,100   19,000   21,100   24,900
 *   longest commit, ms                20       30       36       75
 *   orders/s with lists' index    11,100   11,900   12,700   16,100
 *
 * 2,000: SQLite's own default of 1,000 costs throughput, a third of it before the index of the lists and 7 % with it,
 * and from 4,000 on one checkpoint takes longer than a lease keeps for its commit. Passive checkpoints from a thread
 * of their own cut the longest commit from 30 ms to 20 and moved the throughput by less than the noise: not worth a
 * third thread on two cores.
 */
const CHECKPOINT_PAGES = 2_000

/** Where a log that a slow reader made longer is cut back to: two checkpoints. */
const LOG_LIMIT_BYTES = 2 * CHECKPOINT_PAGES * 4_120

const SMALLEST_PAGE_BYTES = 512

/** Up to 1 s in all, as SQLite waits as well: for another process that migrates or turns the file to WAL at this moment. */
const OPEN_TRIES = 10
const OPEN_PAUSE_MS = 50

/** The writer's connection: makes the folder and the file, and brings the schema up to date. */
export function openForWriting(options: ConnectionOptions): Database.Database {
  checkPath(options.path)
  return whenUnlocked(() =>
    connected(options, { timeout: OPEN_PAUSE_MS }, db => {
      db.pragma('journal_mode = WAL')
      db.pragma(`synchronous = ${options.synchronous}`)
      // Where fsync leaves data in the drive's cache (macOS) this asks for more; elsewhere it does nothing.
      db.pragma('fullfsync = ON')
      db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
      db.pragma(`journal_size_limit = ${LOG_LIMIT_BYTES}`)
      migrate(db)
    }),
  )
}

/**
 * What SQLite would tell too late or not at all: it opens a file that it may not write as read-only, and overwrites
 * one that is too short for a database. Looks without opening: closing a file that SQLite has open in this process
 * drops all of its locks.
 */
function checkPath(path: string): void {
  const folder = dirname(path)
  makeFolder(folder)
  if (!statSync(folder).isDirectory()) throw systemError('ENOTDIR')
  accessSync(folder, constants.W_OK | constants.X_OK)
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined) return
  if (file.isDirectory()) throw systemError('EISDIR')
  accessSync(path, constants.R_OK | constants.W_OK)
  if (file.size > 0 && file.size < SMALLEST_PAGE_BYTES) throw systemError('SQLITE_NOTADB')
}

/** One folder after the other: mkdir's own `recursive` never returns where none can be made (`/proc/x`). */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  try {
    mkdirSync(path)
  } catch (error) {
    // Another process that starts at this moment may have made it.
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

/** The reader's connection: the writer must have opened the same file before. */
export function openForReading(options: ConnectionOptions): Database.Database {
  return whenUnlocked(() => connected(options, { timeout: OPEN_PAUSE_MS, readonly: true }, () => {}))
}

function connected(
  { path, busyTimeoutMs }: ConnectionOptions,
  how: Database.Options,
  prepare: (db: Database.Database) => void,
): Database.Database {
  const db = new Database(path, how)
  try {
    prepare(db)
    db.pragma(`busy_timeout = ${busyTimeoutMs}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Turning a file to WAL answers SQLITE_BUSY without asking the busy timeout, so the waiting is done here. */
function whenUnlocked(open: () => Database.Database): Database.Database {
  const never = new Int32Array(new SharedArrayBuffer(4))
  for (let tries = 1; ; tries++) {
    try {
      return open()
    } catch (error) {
      if (faultOf(error) !== 'locked' || tries === OPEN_TRIES) throw error
      Atomics.wait(never, 0, 0, OPEN_PAUSE_MS)
    }
  }
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code })
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  EISDIR: 'it is a folder',
  EEXIST: 'a part of its path is a file, not a folder',
  ENOTDIR: 'a part of its path is a file, not a folder',
  ENOENT: 'its folder cannot be made',
  ENOSPC: 'the disk is full',
  SQLITE_NOTADB: 'it is not a database',
  SQLITE_BUSY: 'another process holds it locked',
  SQLITE_FULL: 'the disk is full',
  SQLITE_READONLY: 'it is read-only',
}

/** Why a database could not be opened: one line, without its path. */
export function openReason(error: unknown): string {
  if (error instanceof MigrationError) return error.message
  return REASONS[codeOf(error)] ?? reasonOf(error)
}
