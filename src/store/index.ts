export { type StoreChannels, storeChannels } from './channels.ts'
export { openStore } from './open.ts'
export type {
  Backlog,
  ClaimAsk,
  ClaimVerdict,
  DeadEvent,
  Outbox,
  OutboxEvent,
  SettleException,
  Settlement,
  SettleVerdict,
} from './outbox-port.ts'
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
