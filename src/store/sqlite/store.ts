import { resolve } from 'node:path'
import type { z } from 'zod'
import type { Clock } from '../../runtime/index.ts'
import type { StoreChannels } from '../channels.ts'
import type { storeOptions } from '../options.ts'
import type { Store } from '../port.ts'
import { Commits } from './commits.ts'
import { FAULT_WORDS } from './faults.ts'
import { Lookups } from './lookups.ts'
import type { ConnectionOptions, WriterData } from './protocol.ts'
import { purge } from './purge.ts'
import { sqliteOutbox } from './sqlite-outbox.ts'
import { type StartThread, startWorker } from './thread.ts'

/** The store could not be opened. The message is one line for the operator; it names the path. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError'

  constructor(path: string, reason: string) {
    super(`cannot open the store at ${path}: ${reason}`)
  }
}

export interface SqliteStoreDeps {
  readonly clock: Clock
  readonly channels: StoreChannels
  /** How long after its signal a claimed write may still bring its verdict. */
  readonly settleGraceMs: number
  /** How many writes may wait, and how many look-ups. */
  readonly maxPending: number
}

// A drain ends every open claim of the relay at once, some 400 at its default batch: with 16 places most of them were not
// ended, and their events waited for the lease.
const MAX_CHORES = 512

const WRITER = new URL('./writer.ts', import.meta.url)
const READER = new URL('./reader.ts', import.meta.url)

/**
 * The embedded store: SQLite in two threads, one that writes in groups and one that reads. The event loop never
 * waits for SQLite. Throws `StoreOpenError`, and leaves no thread behind then; where something is in its way that may
 * pass, a lock or a disk that is full or fails, it is degraded until that has.
 */
export async function openSqliteStore(
  options: z.output<typeof storeOptions>['sqlite'],
  deps: SqliteStoreDeps,
  startThread: StartThread = startWorker,
): Promise<Store> {
  const { maxBatch, ...rest } = options
  const { channels } = deps
  const connection: ConnectionOptions = { ...rest, path: resolve(options.path) }
  const shared = {
    ...deps,
    maxBatch,
    onHealth: () => publishHealth(),
    onTrouble: (reason: string) => channels.trouble.publish({ reason }),
  }
  const commits = new Commits({
    ...shared,
    maxChores: MAX_CHORES,
    start: (slots, listener) => startThread(WRITER, { ...connection, slots } satisfies WriterData, listener),
  })
  const lookups = new Lookups({
    ...shared,
    start: listener => startThread(READER, connection, listener),
    // While the writer waits there may be nothing to read yet.
    isPassing: () => isWaiting,
  })

  let isWaiting = false
  let published: string | undefined
  function degraded(): string | undefined {
    const fault = commits.thread.fault ?? lookups.thread.fault
    return fault && FAULT_WORDS[fault]
  }
  function publishHealth(): void {
    const now = degraded()
    if (now === published) return
    published = now
    channels.health.publish({ degraded: now })
  }

  /** The writer last: the last connection to close folds the log into the database. */
  async function close(): Promise<void> {
    await lookups.thread.close()
    await commits.thread.close()
  }

  let refusal = await commits.thread.open()
  isWaiting = commits.thread.fault !== undefined
  refusal ??= await lookups.thread.open()
  if (refusal !== undefined) {
    await close()
    throw new StoreOpenError(connection.path, refusal)
  }
  return {
    commit: (write, signal, onDurable) => commits.commit(write, signal, onDurable),
    findReply: (scope, signal) => lookups.findReply(scope, signal),
    findOrder: (tenant, id, signal) => lookups.findOrder(tenant, id, signal),
    findOrders: (tenant, customerId, page, signal) => lookups.findOrders(tenant, customerId, page, signal),
    outbox: sqliteOutbox(commits, lookups),
    purgeKeys: ask => purge(commits, 'keys', ask),
    degraded,
    close,
  }
}
