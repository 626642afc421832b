import { outboxContract } from '../contracts/outbox.contract.ts'
import { type StoreHarness, storeContract } from '../contracts/store.contract.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { SqlitePlace } from '../support/sqlite-place.ts'

storeContract('sqlite', () => new SqlitePlace())
storeContract('memory', memoryPlace)

outboxContract('sqlite', () => {
  const place = new SqlitePlace()
  // Nobody pulls a plug here, and the suite waits for hundreds of commits, one after the other.
  const open = () => place.open({ synchronous: 'OFF' })
  return { open, rows: () => place.rows(), dispose: () => place.dispose() }
})
outboxContract('memory', memoryPlace)

function memoryPlace(): StoreHarness {
  let store: MemoryStore | undefined
  return {
    open: async () => {
      store = new MemoryStore(store)
      return store
    },
    rows: () => ({ keys: store?.keys ?? 0, orders: store?.orders ?? 0, events: store?.events ?? 0 }),
    dispose: async () => {},
  }
}
