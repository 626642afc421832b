import type { Loaded, LoadRun } from '../../../src/cache/index.ts'
import type { Answer, Way } from './schedule.ts'
import { pick, recordsOf, type Truth, type Versions } from './truth.ts'

/** What readers get: which load saw it, and what it saw. */
export interface Told {
  readonly load: number
  readonly versions: Versions
  readonly text?: string
}

export class LoadFailed extends Error {
  readonly load: Load

  constructor(load: Load) {
    super(`load ${load.number} failed`)
    this.load = load
  }
}

/** One look at the truth, for one question; the versions are read when the schedule says so. */
class Look {
  readonly question: string
  /** On the count of its first asker's fence. */
  readonly startedAt: number
  versions: Versions | undefined

  constructor(question: string, startedAt: number) {
    this.question = question
    this.startedAt = startedAt
  }
}

/** One load as its loader sees it: it looks, later it answers. */
export class Load {
  readonly number: number
  readonly asks: readonly string[]
  readonly run: LoadRun
  readonly way: Way
  readonly startedMs: number
  /** Invalidations that its instance had seen by then. */
  readonly movesBefore: number
  readonly isBatch: boolean
  readonly looks: readonly Look[]
  isAnswered = false
  /** Its flight had ended when it answered. */
  wasGivenUp = false
  readonly #answer = Promise.withResolvers<readonly Loaded<Told>[]>()

  constructor(facts: Omit<LoadFacts, 'others'>, looks: readonly Look[]) {
    this.number = facts.number
    this.asks = facts.asks
    this.run = facts.run
    this.way = facts.way
    this.startedMs = facts.startedMs
    this.movesBefore = facts.movesBefore
    this.isBatch = facts.isBatch
    this.looks = looks
    if (facts.way.obeys) facts.run.signal.addEventListener('abort', this.#stop)
  }

  get answered(): Promise<readonly Loaded<Told>[]> {
    return this.#answer.promise
  }

  /** Nobody has told it to stop, and it has not. */
  get isLive(): boolean {
    return !this.isAnswered && !this.run.signal.aborted
  }

  look(truth: Truth): void {
    for (const look of this.looks) look.versions ??= pick(truth.now, recordsOf(look.question))
  }

  answer(how: Answer, truth: Truth): void {
    if (this.isAnswered) return
    this.look(truth)
    this.#end()
    if (how === 'fail') return this.#answer.reject(new LoadFailed(this))
    const answers = this.looks.map(look => ({
      value: this.#tell(look.versions ?? {}),
      ...(how === 'passing' && { passing: true }),
    }))
    this.#answer.resolve(how === 'short' ? answers.slice(0, -1) : answers)
  }

  /** Fails before it has begun. */
  throwAtOnce(): never {
    this.#end()
    throw new LoadFailed(this)
  }

  #tell(versions: Versions): Told | undefined {
    if (Object.values(versions).every(version => version === 0)) return undefined
    return { load: this.number, versions, ...(this.way.large && { text: 'x'.repeat(2_000) }) }
  }

  readonly #stop = () => {
    this.#end()
    this.#answer.reject(this.run.signal.reason)
  }

  #end(): void {
    this.isAnswered = true
    this.run.signal.removeEventListener('abort', this.#stop)
  }
}

export interface LoadFacts {
  readonly number: number
  readonly asks: readonly string[]
  readonly run: LoadRun
  readonly way: Way
  readonly startedMs: number
  readonly movesBefore: number
  readonly isBatch: boolean
  /** Of the same instance, the latest last. */
  readonly others: readonly Load[]
}

/**
 * A load that shares takes part in looks under way, as the pricing chain does: none that its fence calls too early, and
 * none that nobody waits for any more.
 */
export function startLoad({ others, ...facts }: LoadFacts): Load {
  const { now, notBefore } = facts.run.fence
  const live = facts.way.shares ? others.filter(({ isLive }) => isLive) : []
  const current = live.flatMap(load => load.looks)
  const looks = facts.asks.map(
    asked =>
      current.findLast(({ question, startedAt }) => question === asked && startedAt >= notBefore) ??
      new Look(asked, now),
  )
  return new Load(facts, looks)
}
