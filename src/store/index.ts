export { type StoreChannels, storeChannels } from './channels.ts'
export { openStore } from './open.ts'
export type {
  CommitVerdict,
  KeyScope,
  ListedOrder,
  Lookup,
  OrdersPage,
  OrderWrite,
  Store,
  StoredOrder,
  StoredReply,
} from './port.ts'
export { StoreOpenError } from './sqlite/store.ts'
