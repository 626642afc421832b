export { type StoreChannels, storeChannels } from './channels.ts'
export { openStore } from './open.ts'
export {
  type Backlog,
  type ClaimAsk,
  type ClaimVerdict,
  type DeadEvent,
  LONGEST_WAIT_MS,
  type Outbox,
  type OutboxEvent,
  SET_BACK_MS,
  type SettleException,
  type Settlement,
  type SettleVerdict,
} from './outbox-port.ts'
export type {
  CommitVerdict,
  KeyScope,
  ListedOrder,
  Lookup,
  OrdersPage,
  OrderWrite,
  PurgeAsk,
  Purged,
  Store,
  StoredOrder,
  StoredReply,
} from './port.ts'
export { StoreOpenError } from './sqlite/store.ts'
export { Sweep } from './sweep.ts'
