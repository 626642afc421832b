import type { z } from 'zod'
import type { storeOptions } from './options.ts'
import type { Store } from './port.ts'
import { openSqliteStore, type SqliteStoreDeps } from './sqlite/store.ts'

/** Opens the store that the configuration names. Throws `StoreOpenError`. */
export function openStore(options: z.output<typeof storeOptions>, deps: SqliteStoreDeps): Promise<Store> {
  switch (options.driver) {
    case 'sqlite':
      return openSqliteStore(options.sqlite, deps)
  }
}
