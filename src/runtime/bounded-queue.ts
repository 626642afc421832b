/**
 * Bounded queue, first in first out. `offer` refuses when full instead of growing: whoever owns the queue
 * decides what a refusal means. `remove` lets a waiter leave before its turn.
 *
 * A plain array serves: the queues hold what admission lets in, 60 by default, and there `splice` and `indexOf`
 * cost less than the bookkeeping of a ring or a linked list.
 */
export class BoundedQueue<Item> {
  readonly capacity: number
  #items: Item[] = []

  constructor(capacity: number) {
    this.capacity = capacity
  }

  get size(): number {
    return this.#items.length
  }

  /** False when the queue is full; the item was not taken. */
  offer(item: Item): boolean {
    if (this.#items.length >= this.capacity) return false
    this.#items.push(item)
    return true
  }

  /** Takes up to `count` items from the front. */
  take(count: number): Item[] {
    return this.#items.splice(0, count)
  }

  /** True when the item was still waiting. */
  remove(item: Item): boolean {
    const index = this.#items.indexOf(item)
    if (index < 0) return false
    this.#items.splice(index, 1)
    return true
  }
}
