import { Problem } from '../errors/index.ts'
import type { KeyScope, Store, StoredReply } from '../store/index.ts'
import type { IdempotencyChannels } from './channels.ts'

/**
 * Ledger: what an idempotency key stands for. It never decides that a key is free: only the store's unique
 * constraint does, when the write is made. Looking first merely spares a replay the cost of being priced again,
 * and lets it succeed while pricing is down.
 */
export class Ledger {
  readonly #store: Pick<Store, 'findReply'>
  readonly #channels: IdempotencyChannels

  constructor(store: Pick<Store, 'findReply'>, channels: IdempotencyChannels) {
    this.#store = store
    this.#channels = channels
  }

  /**
   * The first answer to this very request, or undefined when there is none to be seen (nothing stored, or the
   * store cannot say now). Throws `idempotency-conflict`.
   */
  async recall(scope: KeyScope, fingerprint: string, signal: AbortSignal): Promise<StoredReply | undefined> {
    const found = await this.#store.findReply(scope, signal)
    return found.kind === 'found' ? this.judge(found.value, fingerprint) : undefined
  }

  /** A taken key: the same request gets its reply again, another one is refused with `idempotency-conflict`. */
  judge(reply: StoredReply, fingerprint: string): StoredReply {
    const same = reply.fingerprint === fingerprint
    this.#channels.decided.publish({ result: same ? 'replay' : 'conflict' })
    if (!same) throw new Problem('idempotency-conflict')
    return reply
  }

  /** The store has made the key ours. */
  created(): void {
    this.#channels.decided.publish({ result: 'new' })
  }
}
