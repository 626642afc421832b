import type { CommitVerdict } from '../store/index.ts'
import type { OrderStore } from './context.ts'

/**
 * A store for rehearsals. Orders that are placed over it go the whole way, the writer's transaction and its fsync
 * included, and nothing stays: each is written as the second version of an order that has no first one, so that the
 * writer takes its key back before it commits.
 */
export function rehearsedStore(store: OrderStore): OrderStore {
  return {
    commit: async (write, signal) => {
      const verdict = await store.commit({ ...write, order: { ...write.order, version: 2 } }, signal)
      return verdict.kind === 'outdated' ? CREATED : verdict
    },
    findReply: (scope, signal) => store.findReply(scope, signal),
    findOrder: (tenant, id, signal) => store.findOrder(tenant, id, signal),
    findOrders: (tenant, customerId, page, signal) => store.findOrders(tenant, customerId, page, signal),
  }
}

const CREATED: CommitVerdict = Object.freeze({ kind: 'created' })
