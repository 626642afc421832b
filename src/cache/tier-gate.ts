import type { Clock, Timer } from '../runtime/index.ts'
import type { SecondTier, TierAnswer, TierPut } from './second-tier.ts'

/**
 * Gate before the second tier: keeps the promise of the fence whatever the tier does.
 *
 *   tag:   settled ──invalidate()──▶ unsettled ──tier confirms──▶ settled
 *   gate:  open ──more unsettled tags than it can hold──▶ shut ──tier confirms that it forgot everything──▶ open
 *
 * An unsettled tag is neither looked up in the tier nor filled there, for the tier may still hold what was before;
 * shut, nothing is. What the tier does not confirm is asked for again, with twice the pause each time, until it is.
 */
export class TierGate {
  readonly #tier: SecondTier
  readonly #clock: Clock
  /** For each unsettled tag, the count of its latest invalidation. */
  readonly #unsettled = new Map<string, number>()
  /** The count when everything went out of date; 0 while open. */
  #shutAt = 0
  #count = 0
  #asking = false
  #putting = 0
  #pauseMs = FIRST_PAUSE_MS
  #timer: Timer | undefined
  #closed = false

  constructor(tier: SecondTier, clock: Clock) {
    this.#tier = tier
    this.#clock = clock
  }

  isOpenFor(tags: readonly string[]): boolean {
    return this.#shutAt === 0 && !tags.some(tag => this.#unsettled.has(tag))
  }

  /** Undefined for whatever is not an answer in time. */
  async get(key: string, tags: readonly string[], signal: AbortSignal): Promise<TierAnswer | undefined> {
    const answer = await this.#inTime(limited => this.#tier.get(key, tags, limited), signal)
    return this.isOpenFor(tags) ? answer : undefined
  }

  /** As many at once as there is room for: a tier that hangs must not pile up what it is to keep. */
  put(key: string, text: string, put: TierPut): void {
    if (!this.isOpenFor(put.tags) || this.#putting >= MAX_PUTS) return
    this.#putting++
    this.#inTime(() => this.#tier.put(key, text, put)).then(() => this.#putting--)
  }

  invalidate(tags: readonly string[]): void {
    this.#count++
    for (const tag of tags) this.#unsettled.set(tag, this.#count)
    if (this.#unsettled.size > MAX_UNSETTLED) this.shut()
    this.#ask()
  }

  /** Everything in the tier is out of date. */
  shut(): void {
    this.#shutAt = ++this.#count
    this.#unsettled.clear()
    this.#ask()
  }

  close(): void {
    this.#closed = true
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer)
  }

  /** One question at a time; what comes meanwhile goes with the next. */
  #ask(): void {
    if (this.#asking || this.#closed || this.#timer !== undefined) return
    if (this.#shutAt === 0 && this.#unsettled.size === 0) return
    this.#asking = true
    const upTo = this.#count
    const question =
      this.#shutAt > 0 ? () => this.#tier.clear() : () => this.#tier.invalidate([...this.#unsettled.keys()])
    this.#inTime(async () => {
      await question()
      return true
    }).then(confirmed => {
      this.#asking = false
      if (confirmed) this.#settle(upTo)
      else this.#askLater()
    })
  }

  #settle(upTo: number): void {
    this.#pauseMs = FIRST_PAUSE_MS
    if (this.#shutAt <= upTo) this.#shutAt = 0
    for (const [tag, count] of this.#unsettled) if (count <= upTo) this.#unsettled.delete(tag)
    this.#ask()
  }

  #askLater(): void {
    if (this.#closed) return
    this.#timer = this.#clock.setTimer(() => {
      this.#timer = undefined
      this.#ask()
    }, this.#pauseMs)
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS)
  }

  /** The tier's answer, or undefined when it fails, takes longer than it may, or nobody waits any more. */
  #inTime<Answer>(
    ask: (signal: AbortSignal) => Promise<Answer>,
    outer?: AbortSignal,
  ): Promise<Answer | undefined> {
    if (outer?.aborted) return Promise.resolve(undefined)
    return new Promise(resolve => {
      const controller = new AbortController()
      const end = (answer: Answer | undefined) => {
        this.#clock.clearTimer(timer)
        outer?.removeEventListener('abort', giveUp)
        resolve(answer)
      }
      const giveUp = () => {
        end(undefined)
        controller.abort()
      }
      const timer = this.#clock.setTimer(() => this.#clock.afterPoll(giveUp), this.#tier.timeoutMs)
      outer?.addEventListener('abort', giveUp)
      Promise.try(ask, controller.signal).then(end, () => end(undefined))
    })
  }
}

// As many as the fence remembers.
const MAX_UNSETTLED = 16_384
const MAX_PUTS = 256
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 5_000
