import type { Clock } from '../runtime/index.ts'
import { CacheFailure } from './failure.ts'
import type { Fence } from './fence.ts'
import { Flight } from './flight.ts'
import type { CacheOptions } from './options.ts'
import type { Tally } from './tally.ts'
import type { Entry, Loaded, Tiers } from './tiers.ts'

/** One kind of question, and where its answers come from. */
export interface Query<Asked, Value> {
  /** Names all that the answer depends on: questions with different answers never share a key. */
  keyOf(asked: Asked): string
  /** What puts the answer out of date when it moves. */
  tagsOf(asked: Asked): readonly string[]
  /** An answer for each question, in their order. Values are JSON-like data; they are frozen. */
  load(asks: readonly Asked[], run: LoadRun): Promise<readonly Loaded<Value>[]>
}

/** Under what a load runs. */
export interface LoadRun {
  readonly signal: AbortSignal
  /** By when it should be over, on the monotonic clock. */
  readonly endsAtMs: number
  /**
   * For a loader that shares its own work: what began before `notBefore`, on the count of `now`, is out of date. It may
   * share the work of loads that have not been told to stop, and of no others.
   */
  readonly fence: { readonly now: number; readonly notBefore: number }
  /** Of the request that it runs for; a refresh runs for none. */
  readonly traceparent?: string
}

/** Reads one kind of question through the cache that made it. */
export class CachedQuery<Asked, Value> {
  readonly #query: Query<Asked, Value>
  readonly #parts: QueryParts
  /** The flight that newcomers may join, by key; outside the store, so that no eviction ends one. */
  readonly #flights = new Map<string, Flight<Loaded<Value>>>()
  /** How many loads of each key are under way. */
  readonly #running = new Map<string, number>()

  constructor(query: Query<Asked, Value>, parts: QueryParts) {
    this.#query = query
    this.#parts = parts
  }

  /** What memory holds, at the cost of a look; undefined when it holds nothing. */
  peek(asked: Asked): Loaded<Value> | undefined {
    const key = this.#query.keyOf(asked)
    const entry = this.#parts.tiers.look(key)
    return entry && this.#readEntry(asked, key, entry)
  }

  /** What memory holds of all of them; undefined, and no read at all, when it lacks one or holds that it is not there. */
  peekAll(asks: readonly Asked[]): readonly Value[] | undefined {
    const entries: [Asked, string, Entry][] = []
    for (const asked of asks) {
      const key = this.#query.keyOf(asked)
      const entry = this.#parts.tiers.look(key)
      if (entry?.loaded.value === undefined) return undefined
      entries.push([asked, key, entry])
    }
    return entries.map(entry => this.#readEntry(...entry).value as Value)
  }

  /**
   * The answer, undefined when there is no such thing: from memory, or with one load for all who ask meanwhile.
   *
   * Throws what the loader throws, `CacheFailure`, or the signal's reason.
   */
  async read(asked: Asked, signal?: AbortSignal): Promise<Value | undefined> {
    const held = this.peek(asked)
    if (held) return held.value
    signal?.throwIfAborted()
    const { fence, tally, tiers } = this.#parts
    const question = this.#missed(asked)
    const { key, tags } = question
    const current = this.#flights.get(key)
    // What began before a tag moved is not for anyone who comes after.
    if (current && !fence.hasMoved(tags, current.stamp)) {
      tally.flights.follower++
      return (await current.join(signal)).value
    }
    tally.flights.leader++
    const flight = this.#open(key, 'loads')
    const landing = flight.join(signal)
    if (tiers.reachSecond(tags)) {
      this.#loadThroughSecond(flight, question).catch((error: unknown) => flight.fail(error))
    } else {
      this.#load(flight, question)
    }
    return (await landing).value
  }

  /**
   * Answers to several questions, in their order, with one load for all that no tier has. It shares no flights: whoever
   * loads several things at once shares better by itself (the pricing chain does, SKU by SKU and under each caller's
   * own lease), and learns from `run.fence` what it must not share any more.
   *
   * Throws what the loader throws, or the signal's reason.
   */
  async readBatch(asks: readonly Asked[], run: Omit<LoadRun, 'fence'>): Promise<readonly Loaded<Value>[]> {
    const answers = asks.map(asked => this.peek(asked))
    const missing = asks.flatMap((asked, index) =>
      answers[index] === undefined
        ? [{ ...this.#missed(asked), index, ticket: undefined as string | undefined }]
        : [],
    )
    if (missing.length > 0) run.signal.throwIfAborted()
    await Promise.all(missing.map(question => this.#askSecond(question, answers, run.signal)))
    run.signal.throwIfAborted()
    const open = missing.filter(({ index }) => answers[index] === undefined)
    if (open.length === 0) return answers as Loaded<Value>[]

    const { fence, tally, tiers } = this.#parts
    const stamp = fence.now
    for (const question of open) question.ticket = this.#alone(question.key, question.ticket)
    for (const { key } of open) this.#begin(key)
    const notBefore = fence.lastMove(open.flatMap(({ tags }) => tags))
    tally.inFlight++
    try {
      const load = { ...run, fence: { now: stamp, notBefore } }
      const loads = await this.#query.load(
        open.map(({ asked }) => asked),
        load,
      )
      for (const [place, { index, key, tags, ticket }] of open.entries()) {
        const loaded = answerAt(loads, place)
        answers[index] = loaded
        tiers.keep(loaded, { key, tags, stamp, ticket })
      }
      tally.loads.ok++
      return answers as Loaded<Value>[]
    } catch (error) {
      if (!run.signal.aborted) tally.loads.failed++
      throw error
    } finally {
      for (const { key } of open) this.#settle(key)
      tally.inFlight--
    }
  }

  /**
   * The ticket, unless a load of `key` is under way: the next one may share its work, which began before the ticket was
   * handed out, and another instance's invalidation may lie between the two that this one has not heard of.
   */
  #alone(key: string, ticket: string | undefined): string | undefined {
    return this.#running.has(key) ? undefined : ticket
  }

  #begin(key: string): void {
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1)
  }

  #settle(key: string): void {
    const left = (this.#running.get(key) ?? 0) - 1
    if (left > 0) this.#running.set(key, left)
    else this.#running.delete(key)
  }

  #readEntry(asked: Asked, key: string, entry: Entry): Loaded<Value> {
    const { tiers } = this.#parts
    tiers.countRead(key, entry)
    if (tiers.isAgeing(entry) && this.#refresh(key, asked)) tiers.postpone(entry)
    return entry.loaded as Loaded<Value>
  }

  #missed(asked: Asked): Question<Asked> {
    const key = this.#query.keyOf(asked)
    this.#parts.tiers.countMiss(key)
    return { asked, key, tags: this.#query.tagsOf(asked) }
  }

  async #askSecond(
    question: Question<Asked> & { index: number; ticket: string | undefined },
    answers: (Loaded<Value> | undefined)[],
    signal: AbortSignal,
  ): Promise<void> {
    const { fence, tiers } = this.#parts
    const { key, tags, index } = question
    if (!tiers.reachSecond(tags)) return
    const stamp = fence.now
    const { loaded, ticket } = await tiers.askSecond(key, tags, signal)
    question.ticket = ticket
    const held = tiers.look(key)
    // Meanwhile a load of its own may have landed: newer than the tier's answer, and at hand.
    if (held !== undefined) answers[index] = held.loaded as Loaded<Value>
    if (held !== undefined || loaded === undefined) return
    answers[index] = loaded as Loaded<Value>
    tiers.keep(loaded, { key, tags, stamp })
  }

  /** A flight that newcomers find until it ends, or until another one has taken its place. */
  #open(key: string, permit: 'loads' | 'refreshes'): Flight<Loaded<Value>> {
    const { clock, options, fence, permits, tally } = this.#parts
    const flight: Flight<Loaded<Value>> = new Flight(fence.now, {
      clock,
      limits: options,
      pinned: permit === 'refreshes',
      onEnd: result => {
        if (this.#flights.get(key) === flight) this.#flights.delete(key)
        if (flight.loading) {
          this.#settle(key)
          permits[permit]--
          tally.inFlight--
        }
        if (result === 'refused' || (flight.loading && result !== 'cancelled')) tally.loads[result]++
      },
      onWaitTimeout: () => tally.waitTimeouts++,
    })
    this.#flights.set(key, flight)
    return flight
  }

  async #loadThroughSecond(flight: Flight<Loaded<Value>>, question: Question<Asked>): Promise<void> {
    const { tiers } = this.#parts
    const { key, tags } = question
    const { stamp } = flight
    const { loaded, ticket } = await tiers.askSecond(key, tags, flight.signal)
    if (flight.ended) return
    // Meanwhile a tag may have moved and a later flight have landed: newer than the tier's answer, and at hand.
    const held = tiers.look(key)
    if (held !== undefined) return flight.land(held.loaded as Loaded<Value>)
    if (loaded === undefined) return this.#load(flight, question, this.#alone(key, ticket))
    tiers.keep(loaded, { key, tags, stamp })
    flight.land(loaded as Loaded<Value>)
  }

  #load(flight: Flight<Loaded<Value>>, { asked, key, tags }: Question<Asked>, ticket?: string): void {
    const { fence, permits, options, tally, tiers } = this.#parts
    const permit = flight.pinned ? 'refreshes' : 'loads'
    if (permit === 'loads' && permits.loads >= options.maxConcurrentLoads) {
      return flight.fail(new CacheFailure('refused'))
    }
    this.#begin(key)
    permits[permit]++
    tally.inFlight++
    const stamp = fence.now
    const endsAtMs = flight.startLoad(stamp)
    const run: LoadRun = {
      signal: flight.signal,
      endsAtMs,
      fence: { now: stamp, notBefore: fence.lastMove(tags) },
    }
    Promise.try(() => this.#query.load([asked], run))
      .then(loads => {
        // Given up on: the key may have a flight that is newer.
        if (flight.ended) return
        const loaded = answerAt(loads, 0)
        tiers.keep(loaded, { key, tags, stamp, ticket })
        flight.land(loaded)
      })
      .catch((error: unknown) => flight.fail(error))
  }

  /** True when a refresh has been started: one at a time for each key, and within a budget of its own. */
  #refresh(key: string, asked: Asked): boolean {
    const { permits, options } = this.#parts
    if (permits.refreshes >= Math.ceil(options.maxConcurrentLoads / LOADS_PER_REFRESH)) return false
    if (this.#flights.has(key)) return false
    const question = { asked, key, tags: this.#query.tagsOf(asked) }
    this.#load(this.#open(key, 'refreshes'), question)
    return true
  }
}

/** What all questions to one cache share. */
export interface QueryParts {
  readonly options: CacheOptions
  readonly clock: Clock
  readonly fence: Fence
  readonly tiers: Tiers
  readonly tally: Tally
  /** Loads in progress, of each kind. */
  readonly permits: { loads: number; refreshes: number }
}

interface Question<Asked> {
  readonly asked: Asked
  readonly key: string
  readonly tags: readonly string[]
}

const LOADS_PER_REFRESH = 8

function answerAt<Value>(loads: readonly Loaded<Value>[], place: number): Loaded<Value> {
  const loaded = loads[place]
  if (loaded === undefined) throw new TypeError('a load brought fewer answers than it had questions')
  return loaded
}
