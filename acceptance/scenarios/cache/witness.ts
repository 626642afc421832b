import { jsonOf } from '../../support/answer.ts'
import type { Client } from '../../support/client.ts'
import { type OrderBody, orderOf, type Page, pageOf, status } from '../../support/expect.ts'

/** An order as its writer knows it. */
export interface Known {
  readonly id: string
  readonly customerId: string
  readonly key: string
}

/** How an order can be found. */
export const WAYS = ['by its id', 'in the list of its customer', 'by its key'] as const
export type Way = (typeof WAYS)[number]

/**
 * Witness: what was acknowledged, and whether any read that began afterwards showed something older. It judges each
 * read by what had been acknowledged when it began; what comes while it is under way it may show or not.
 */
export class Witness {
  readonly #acknowledged = new Map<string, { known: Known; version: number }>()
  readonly #reads: Record<Way, { count: number; stale: string[] }> = {
    'by its id': { count: 0, stale: [] },
    'in the list of its customer': { count: 0, stale: [] },
    'by its key': { count: 0, stale: [] },
  }

  /** From now on nobody may see less of this order than `version`. */
  acknowledge(known: Known, version: number): void {
    this.#acknowledged.set(known.id, { known, version })
  }

  /** The order that was acknowledged so many before the latest one. */
  recent(back: number): Known | undefined {
    return [...this.#acknowledged.values()].at(-1 - back)?.known
  }

  get orders(): number {
    return this.#acknowledged.size
  }

  reads(way: Way): { readonly count: number; readonly stale: readonly string[] } {
    return this.#reads[way]
  }

  /** Reads an order in one way, and keeps what is wrong with the answer. */
  async read(client: Client, way: Way, known: Known): Promise<void> {
    const owed = [...this.#acknowledged.values()].filter(other => isShown(way, known, other.known))
    const shown = new Map((await ordersOf(client, way, known)).map(({ id, version }) => [id, version]))
    const reads = this.#reads[way]
    reads.count++
    for (const { known, version } of owed) {
      const seen = shown.get(known.id) ?? 0
      if (seen < version)
        reads.stale.push(`${known.id} at version ${seen}, after ${version} was acknowledged`)
    }
  }
}

function isShown(way: Way, asked: Known, other: Known): boolean {
  return way === 'in the list of its customer' ? other.customerId === asked.customerId : other.id === asked.id
}

async function ordersOf(client: Client, way: Way, known: Known): Promise<readonly OrderBody[]> {
  if (way === 'by its key') return pageOf(await client.list({ idempotencyKey: known.key })).orders
  if (way !== 'by its id') return everyPage(client, known.customerId)
  const answer = await client.get(`/v1/orders/${known.id}`)
  status(answer, 200)
  return [orderOf(answer, jsonOf(answer).status === 'cancelled' ? 'cancelled' : 'accepted')]
}

/** A page may end before its limit, so a customer's orders are what all pages hold. */
async function everyPage(client: Client, customerId: string): Promise<readonly OrderBody[]> {
  const orders: OrderBody[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Page = pageOf(await client.list({ customerId, limit: '100', ...(cursor && { cursor }) }))
    orders.push(...page.orders)
    cursor = page.nextCursor
  }
  return orders
}
