import type { Layer } from './call.ts'

/**
 * Retry budget: what all extra attempts, retries and hedges alike, may add to the load of pricing. Every call puts
 * `ratio` of a token in, every extra attempt takes a whole one out, at the moment it is decided on: a thousand
 * failures at once cannot all decide to retry. (Finagle's RetryBudget; Google's SRE book, "Handling Overload".)
 *
 * The bucket holds few tokens, so that a quiet hour does not save up a storm. That of all extra attempts starts full,
 * so that the first failure after a start may be retried; that of hedges starts empty, and they are never more than
 * their share.
 */
export class RetryBudget {
  readonly #ratio: number
  readonly #capacity: number
  #tokens: number

  /** Starts with `tokens`; as many as it holds, if nothing else is said. */
  constructor(ratio: number, capacity = CAPACITY, tokens = capacity) {
    this.#ratio = ratio
    this.#capacity = capacity
    this.#tokens = ratio === 0 ? 0 : tokens
  }

  /** A layer that counts every call into these budgets, once, however many attempts it takes. */
  static deposits(...budgets: readonly RetryBudget[]): Layer {
    return next => call => {
      for (const budget of budgets) budget.deposit()
      return next(call)
    }
  }

  /** A call was made. */
  deposit(): void {
    this.#tokens = Math.min(this.#capacity, this.#tokens + this.#ratio)
  }

  /** True, and a token less, when an extra attempt may be made. */
  withdraw(): boolean {
    // Tenths do not add up exactly: ten deposits of 0.1 are worth one token.
    if (this.#tokens < 1 - 1e-9) return false
    this.#tokens -= 1
    return true
  }

  /** A decision that came to nothing gives its token back. */
  refund(): void {
    this.#tokens = Math.min(this.#capacity, this.#tokens + 1)
  }
}

const CAPACITY = 10
