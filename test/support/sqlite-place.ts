import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { systemClock } from '../../src/runtime/index.ts'
import { type Store, type StoreChannels, storeChannels } from '../../src/store/index.ts'
import { openSqliteStore, type SqliteStoreDeps } from '../../src/store/sqlite/store.ts'
import type { StartThread } from '../../src/store/sqlite/thread.ts'

type SqliteOptions = Parameters<typeof openSqliteStore>[0]

/** A folder for one test, with the embedded store in it. */
export class SqlitePlace {
  readonly folder: string
  readonly path: string
  readonly channels: StoreChannels = storeChannels()
  readonly #opened: Store[] = []

  constructor(folder = mkdtempSync(join(tmpdir(), 'punctual-store-'))) {
    this.folder = folder
    this.path = join(folder, 'data', 'punctual.db')
  }

  async open(
    options: Partial<SqliteOptions> = {},
    deps: Partial<SqliteStoreDeps> = {},
    startThread?: StartThread,
  ): Promise<Store> {
    const store = await openSqliteStore(
      { path: this.path, synchronous: 'FULL', busyTimeoutMs: 100, maxBatch: 64, ...options },
      { clock: systemClock, channels: this.channels, settleGraceMs: 25, maxPending: 1_000, ...deps },
      startThread,
    )
    this.#opened.push(store)
    return store
  }

  /** A connection of another program to the same file. */
  connect(): Database.Database {
    return new Database(this.path, { timeout: 5_000 })
  }

  rows(): { keys: number; orders: number; events: number } {
    const db = this.connect()
    try {
      const count = (table: string) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number
      return { keys: count('idempotency'), orders: count('orders'), events: count('outbox') }
    } finally {
      db.close()
    }
  }

  /** Resolves with the next change of health. */
  nextHealth(): Promise<string | undefined> {
    return new Promise(resolve => {
      const unsubscribe = this.channels.health.subscribe(({ degraded }) => {
        unsubscribe()
        resolve(degraded)
      })
    })
  }

  async dispose(): Promise<void> {
    for (const store of this.#opened) await store.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
