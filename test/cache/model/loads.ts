import type { Loaded, LoadRun } from '../../../src/cache/index.ts'
import type { VirtualClock } from '../../support/virtual-clock.ts'
import { chosen } from './choose.ts'
import type { Instance } from './instance.ts'
import { type Load, startLoad, type Told } from './load.ts'
import type { Answer, Way } from './schedule.ts'
import type { Truth } from './truth.ts'
import type { Verdict } from './verdict.ts'

const STEADY: Way = { looksAtOnce: true, obeys: true, throws: false, shares: false, large: false, ends: true }
/** Timers are whole milliseconds, and may be one early. */
export const SLACK_MS = 2

/** All loads of a story, from their beginning to what they bring. */
export class Loads {
  ways: Way[] = []
  /** Whether a load is answered as soon as it begins. */
  arePrompt = true
  /** Up to here every timer that was due has fired. */
  quietMs = 0
  /** Signals of batches, by which a load for one is known. */
  readonly batches = new Set<AbortSignal>()
  readonly #all: Load[] = []
  readonly #parts: LoadsParts

  constructor(parts: LoadsParts) {
    this.#parts = parts
  }

  begin(instance: Instance, asks: readonly string[], run: LoadRun): Promise<readonly Loaded<Told>[]> {
    const { clock, truth } = this.#parts
    const load = startLoad({
      number: this.#all.length,
      asks,
      run,
      way: this.ways.shift() ?? STEADY,
      startedMs: clock.nowMs(),
      movesBefore: instance.moves,
      isBatch: this.batches.has(run.signal),
      others: instance.loads,
    })
    if (!load.isBatch && instance.tier === undefined) this.#expectNoRival(load, instance)
    this.#all.push(load)
    instance.loads.push(load)
    if (load.way.throws) load.throwAtOnce()
    if (load.way.looksAtOnce) load.look(truth)
    if (this.arePrompt) load.answer('ok', truth)
    return load.answered
  }

  look(which: number): void {
    chosen(this.#open(), which)?.look(this.#parts.truth)
  }

  answer(which: number, how: Answer): void {
    const load = chosen(this.#open(), which)
    if (load === undefined) return
    load.wasGivenUp = this.#isGivenUp(load)
    load.answer(how, this.#parts.truth)
  }

  wasGivenUp(number: number): boolean {
    return this.#all[number]?.wasGivenUp ?? false
  }

  /** Whether a batch under this signal waits for its loader. */
  isLoading(signal: AbortSignal): boolean {
    return this.#open().some(({ run }) => run.signal === signal)
  }

  /** Those that end in the end do so; batches have no limit but their loader's. */
  answerAll(): void {
    this.arePrompt = true
    for (const load of this.#open()) {
      load.wasGivenUp = this.#isGivenUp(load)
      if (load.isBatch || load.way.ends) load.answer('ok', this.#parts.truth)
    }
  }

  /** Those that were given up on have been told so. */
  expectTold(): void {
    for (const { number, isBatch, run } of this.#open()) {
      if (isBatch || run.signal.aborted) continue
      this.#parts.verdict.blame('rest', `load ${number} was given up on and not told to stop`)
    }
  }

  #open(): Load[] {
    return this.#all.filter(({ isAnswered }) => !isAnswered)
  }

  /** Its waiters have left, or it has run past its limit on a loop that kept up. */
  #isGivenUp({ isBatch, run: { signal }, startedMs }: Load): boolean {
    if (isBatch) return false
    const isOverdue = startedMs + this.#parts.loadTimeoutMs + SLACK_MS < this.quietMs
    return isOverdue || (signal.aborted && signal.reason?.kind !== 'load-timeout')
  }

  /** With a second tier two flights of one key, of before and after a move, may both come to load after it. */
  #expectNoRival({ asks: [question], number, movesBefore }: Load, instance: Instance): void {
    const rival = instance.loads.find(
      load => !load.isBatch && load.isLive && load.movesBefore === movesBefore && load.asks[0] === question,
    )
    if (rival) this.#parts.verdict.blame('once', `load ${number} began beside load ${rival.number}`)
  }
}

interface LoadsParts {
  readonly clock: VirtualClock
  readonly truth: Truth
  readonly verdict: Verdict
  readonly loadTimeoutMs: number
}
