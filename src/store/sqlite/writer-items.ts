import type { Database } from 'better-sqlite3'
import { OrderWrites } from './order-writes.ts'
import { type Exception, OutboxClaims } from './outbox-claims.ts'
import { type Flat, ITEM, VERDICT } from './protocol.ts'
import { type Purgeable, PurgeSteps } from './purge-steps.ts'

/** Carries out the items of a batch, whatever their kind, inside the transaction that is open. */
export class WriterItems {
  readonly #orders: OrderWrites
  readonly #outbox: OutboxClaims
  readonly #purges: PurgeSteps

  constructor(db: Database) {
    this.#orders = new OrderWrites(db)
    this.#outbox = new OutboxClaims(db)
    this.#purges = new PurgeSteps(db)
  }

  /** Does the item at `at` and adds its answer to `values`. Whether it has written anything. */
  perform(batch: Flat, at: number, values: Flat): boolean {
    const kind = batch[at]
    if (kind === ITEM.order) return this.#orders.write(batch, at + 1, values)
    const answer = this.#chore(kind, batch, at + 1)
    values.push(VERDICT.done, answer.length, ...answer)
    return answer.length > 0 && answer[0] !== 0
  }

  /** Nothing, or a zero first, when nothing was there to be done. */
  #chore(kind: Flat[number] | undefined, batch: Flat, at: number): Flat {
    const [one, two, three, four, five] = batch.slice(at, at + MOST_FIELDS)
    switch (kind) {
      case ITEM.claim:
        return this.#outbox.claim(Number(one), Number(two), Number(three)) ?? []
      case ITEM.settle: {
        const exceptions = JSON.parse(String(two)) as Exception[]
        const keeps = JSON.parse(String(three)) as number[]
        return [this.#outbox.settle(Number(one), exceptions, keeps) ? 1 : 0]
      }
      case ITEM.redrive:
        return [this.#outbox.redrive(String(one), Number(two))]
      case ITEM.purge:
        return this.#purges.take(one as Purgeable, Number(two), Number(three), Number(four), Number(five))
      case ITEM.handBack:
        return [this.#outbox.handBack(Number(one)) ? 1 : 0]
      default:
        throw new TypeError('an item for the writer is of no kind')
    }
  }
}

const MOST_FIELDS = 5
