import { getEventListeners } from 'node:events'
import type { VirtualClock } from '../../support/virtual-clock.ts'
import { chosen } from './choose.ts'
import type { Instance } from './instance.ts'
import { LoadFailed, type Told } from './load.ts'
import { type Loads, SLACK_MS } from './loads.ts'
import type { Leaves } from './schedule.ts'
import { recordsOf, type Truth, type Versions } from './truth.ts'
import type { Verdict } from './verdict.ts'

/** One read, and what it must see at least: what had been acknowledged when it began. */
interface Reader {
  readonly name: string
  readonly how: 'read' | 'peek' | 'batch'
  readonly questions: readonly string[]
  readonly floor: Versions
  /** By when it has had its end. */
  dueMs: number
  readonly controller: AbortController | undefined
  ends: number
}

/** All readers of a story; each answer is held against the sentences at once. */
export class Readers {
  readonly #all: Reader[] = []
  readonly #parts: ReadersParts

  constructor(parts: ReadersParts) {
    this.#parts = parts
  }

  read(instance: Instance, question: string, leaves: Leaves = 'never'): void {
    const reader = this.#begin('read', instance, [question], leaves)
    instance.query.read(question, reader.controller?.signal).then(
      value => this.#judge(reader, [value]),
      error => this.#judgeError(reader, error),
    )
  }

  peek(instance: Instance, question: string): void {
    const reader = this.#begin('peek', instance, [question], 'never')
    const held = instance.query.peek(question)
    if (held) this.#judge(reader, [held.value])
    else this.#end(reader)
  }

  batch(instance: Instance, questions: readonly string[], leaves: Leaves): void {
    const reader = this.#begin('batch', instance, questions, leaves)
    const { signal } = reader.controller ?? new AbortController()
    this.#parts.loads.batches.add(signal)
    instance.query.readBatch(questions, { signal, endsAtMs: this.#parts.clock.nowMs() + 100 }).then(
      loads =>
        this.#judge(
          reader,
          loads.map(({ value }) => value),
        ),
      error => this.#judgeError(reader, error),
    )
  }

  abort(which: number): void {
    const waiting = this.#all.filter(
      ({ ends, controller }) => ends === 0 && controller?.signal.aborted === false,
    )
    const reader = chosen(waiting, which)
    if (reader) leave(reader)
  }

  /** Every promise has settled. */
  expectAbortedGone(): void {
    const { loads, verdict } = this.#parts
    for (const { how, name, ends, controller } of this.#all) {
      if (ends > 0 || !controller?.signal.aborted) continue
      if (how === 'read' || !loads.isLoading(controller.signal)) {
        verdict.blame('ends', `${name} was aborted and waits on`)
      }
    }
  }

  /** The loop was busy up to now: what fell due meanwhile is due now. */
  stalled(ms: number): void {
    const untilMs = this.#parts.clock.nowMs()
    for (const reader of this.#all)
      if (reader.dueMs >= untilMs - ms) reader.dueMs = Math.max(reader.dueMs, untilMs)
  }

  /** Whatever they waited for has ended. */
  expectGone(): void {
    for (const { name, ends, controller } of this.#all) {
      if (ends !== 1) this.#parts.verdict.blame('ends', `${name} got ${ends} ends`)
      const listeners = controller ? getEventListeners(controller.signal, 'abort') : []
      if (listeners.length > 0) this.#parts.verdict.blame('rest', `${name} left a listener on its signal`)
    }
  }

  #begin(how: Reader['how'], instance: Instance, questions: readonly string[], leaves: Leaves): Reader {
    const reader: Reader = {
      name: `${how} ${this.#all.length}`,
      how,
      questions,
      floor: instance.acknowledged,
      // A batch runs under its caller's limits alone.
      dueMs:
        how === 'batch'
          ? Number.POSITIVE_INFINITY
          : this.#parts.clock.nowMs() + this.#parts.waitTimeoutMs + SLACK_MS,
      controller: leaves === 'never' ? undefined : new AbortController(),
      ends: 0,
    }
    this.#all.push(reader)
    if (leaves === 'before') leave(reader)
    return reader
  }

  #end(reader: Reader): void {
    reader.ends++
    const { clock, verdict } = this.#parts
    if (clock.nowMs() > reader.dueMs) verdict.blame('ends', `${reader.name} waited too long`)
  }

  #judge(reader: Reader, values: readonly (Told | undefined)[]): void {
    const { verdict, truth, loads } = this.#parts
    const { name, questions } = reader
    this.#end(reader)
    if (values.length !== questions.length) verdict.blame('ends', `${name} got ${values.length} answers`)
    for (const [index, question] of questions.entries()) {
      const told = values[index]
      for (const record of recordsOf(question)) {
        const version = told?.versions[record] ?? 0
        const floor = reader.floor[record] ?? 0
        const now = truth.now[record] ?? 0
        if (version < floor) verdict.blame('fresh', `${name} got ${record} ${version} after ${floor}`)
        if (version > now) verdict.blame('fresh', `${name} got ${record} ${version}, which is not yet`)
      }
      if (told === undefined) continue
      if (!Object.isFrozen(told.versions)) verdict.blame('fresh', `${name} could change what others read`)
      if (loads.wasGivenUp(told.load)) verdict.blame('given up', `${name} got what load ${told.load} brought`)
    }
  }

  #judgeError(reader: Reader, error: unknown): void {
    const { how, name, questions, controller } = reader
    this.#end(reader)
    const isOwn = controller?.signal.aborted && error === controller.signal.reason
    // By name, since a variant of the cache has a class of its own; a batch has no limits but its caller's.
    const isLimit = how === 'read' && error instanceof Error && error.name === 'CacheFailure'
    const isOfLoad = error instanceof LoadFailed && questions.some(asked => error.load.asks.includes(asked))
    const isShort = error instanceof TypeError && error.message.includes('fewer answers')
    if (isOwn || isLimit || isOfLoad || isShort) return
    this.#parts.verdict.blame('ends', `${name} got ${String(error)}`)
  }
}

function leave({ name, controller }: Reader): void {
  controller?.abort(new Error(`${name} left`))
}

interface ReadersParts {
  readonly clock: VirtualClock
  readonly truth: Truth
  readonly verdict: Verdict
  readonly loads: Loads
  readonly waitTimeoutMs: number
}
