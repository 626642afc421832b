import type { SecondTier, TierAnswer, TierListener, TierPut } from '../../src/cache/index.ts'
import type { Clock } from '../../src/runtime/index.ts'

interface Kept {
  readonly text: string
  readonly tags: readonly string[]
  readonly ticket: string
  readonly endsAtMs: number
}

/**
 * Where the instances of a test keep what they share. It counts invalidations; a ticket is the count at which it was
 * handed out, and is void once a tag of the text stands higher. What it says is judged anew at each look, so that
 * neither the order of calls nor what lies under a key matters.
 */
export class TierPlace {
  readonly #clock: Clock
  readonly #instances = new Set<MemoryTier>()
  readonly #texts = new Map<string, Kept>()
  readonly #invalidatedAt = new Map<string, number>()
  #clearedAt = 0
  #count = 0
  /** Tickets of an earlier life are void, wherever the count stands. */
  #life = 1

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** One instance's way to it. */
  connect(): MemoryTier {
    const tier = new MemoryTier(this)
    this.#instances.add(tier)
    return tier
  }

  get(key: string): TierAnswer {
    const kept = this.#texts.get(key)
    const isGood = kept && this.#isValid(kept.ticket, kept.tags) && kept.endsAtMs > this.#clock.nowMs()
    return isGood
      ? { kind: 'found', text: kept.text }
      : { kind: 'missing', ticket: `${this.#life}.${this.#count}` }
  }

  put(key: string, text: string, { tags, ttlMs, ticket }: TierPut): void {
    if (!this.#isValid(ticket, tags)) return
    this.#texts.set(key, { text, tags, ticket, endsAtMs: this.#clock.nowMs() + ttlMs })
  }

  invalidate(tags: readonly string[], by: MemoryTier): void {
    this.#count++
    for (const tag of tags) this.#invalidatedAt.set(tag, this.#count)
    this.#tellOthers(by, { kind: 'invalidated', tags })
  }

  clear(by: MemoryTier): void {
    this.#clearedAt = ++this.#count
    this.#tellOthers(by, { kind: 'lost' })
  }

  /** It loses all that it knows, as a place without a disk does when it starts again. */
  wipe(): void {
    this.#life++
    this.#count = 0
    this.#clearedAt = 0
    this.#invalidatedAt.clear()
    this.#texts.clear()
    this.#tellOthers(undefined, { kind: 'lost' })
  }

  #isValid(ticket: string, tags: readonly string[]): boolean {
    const [life, count] = ticket.split('.').map(Number)
    if (life !== this.#life || count === undefined || !(this.#clearedAt <= count)) return false
    return tags.every(tag => (this.#invalidatedAt.get(tag) ?? 0) <= count)
  }

  #tellOthers(by: MemoryTier | undefined, news: TierNews): void {
    for (const tier of this.#instances) if (tier !== by) tier.onNews(news)
  }
}

/** What other instances have done, on its way to one that listens. */
export type TierNews =
  | { readonly kind: 'invalidated'; readonly tags: readonly string[] }
  | { readonly kind: 'lost' }

/**
 * The port in memory. It answers at once unless the test takes the calls for itself: then each is applied, answered
 * or failed when the test says so, in any order, or hangs for ever.
 */
export class MemoryTier implements SecondTier {
  readonly timeoutMs = 20
  /** Who decides what becomes of a call. */
  onCall: (call: TierCall) => void = call => call.answer()
  /** Who decides when the listeners hear of something, if ever. */
  onNews: (news: TierNews) => void = news => this.tell(news)
  readonly #place: TierPlace
  readonly #listeners = new Set<TierListener>()

  constructor(place: TierPlace) {
    this.#place = place
  }

  get(key: string, _tags: readonly string[], _signal: AbortSignal): Promise<TierAnswer> {
    return this.#ask('get', () => this.#place.get(key))
  }

  put(key: string, text: string, put: TierPut): Promise<void> {
    return this.#ask('put', () => this.#place.put(key, text, put))
  }

  invalidate(tags: readonly string[]): Promise<void> {
    return this.#ask('invalidate', () => this.#place.invalidate(tags, this))
  }

  clear(): Promise<void> {
    return this.#ask('clear', () => this.#place.clear(this))
  }

  listen(listener: TierListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  tell(news: TierNews): void {
    for (const listener of this.#listeners) {
      if (news.kind === 'invalidated') listener.invalidated(news.tags)
      else listener.lost()
    }
  }

  #ask<Answer>(kind: TierCall['kind'], work: () => Answer): Promise<Answer> {
    const call = new Call(kind, work)
    this.onCall(call)
    return call.result
  }
}

/** One call on its way: applied at most once, and answered or failed at most once. */
export interface TierCall {
  readonly kind: 'get' | 'put' | 'invalidate' | 'clear'
  /** It counts from now on, whatever its caller is told, and when. */
  apply(): void
  answer(): void
  /** Its caller is told that it failed, true or not. */
  fail(): void
}

class Call<Answer> implements TierCall {
  readonly kind: TierCall['kind']
  readonly #work: () => Answer
  readonly #result = Promise.withResolvers<Answer>()
  #applied: { readonly answer: Answer } | undefined

  constructor(kind: TierCall['kind'], work: () => Answer) {
    this.kind = kind
    this.#work = work
  }

  get result(): Promise<Answer> {
    return this.#result.promise
  }

  apply(): Answer {
    this.#applied ??= { answer: this.#work() }
    return this.#applied.answer
  }

  answer(): void {
    this.#result.resolve(this.apply())
  }

  fail(): void {
    this.#result.reject(new Error('ECONNRESET'))
  }
}
