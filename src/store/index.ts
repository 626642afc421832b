export { type StoreChannels, storeChannels } from './channels.ts'
export type { CommitVerdict, KeyScope, Lookup, OrderWrite, Store, StoredOrder, StoredReply } from './port.ts'
export { openSqliteStore, StoreOpenError } from './sqlite/store.ts'
