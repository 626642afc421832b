import { storeContract } from '../contracts/store.contract.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'

storeContract('sqlite', () => new SqlitePlace())

storeContract('memory', () => {
  let store: MemoryStore | undefined
  return {
    open: async () => {
      store = new MemoryStore(store)
      return store
    },
    rows: () => ({ keys: store?.keys ?? 0, orders: store?.orders ?? 0, events: store?.events ?? 0 }),
    dispose: async () => {},
  }
})
