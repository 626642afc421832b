import { type CacheOptions, cacheOptions } from '../../../src/cache/options.ts'
import { type TierCall, TierPlace } from '../../support/memory-tier.ts'
import { promisesSettled, VirtualClock } from '../../support/virtual-clock.ts'
import { chosen, taken } from './choose.ts'
import { Instance, type Source } from './instance.ts'
import { Loads } from './loads.ts'
import { Readers } from './readers.ts'
import { expectWhole } from './rest.ts'
import { ALL_TURNS, type Move, type Schedule, type TierFate } from './schedule.ts'
import { pick, recordsOf, Truth, tagOf, type Versions } from './truth.ts'
import { Verdict } from './verdict.ts'

interface Write {
  readonly instance: Instance
  readonly versions: Versions
}

/** A schedule, played on a cache whose loads, writers, readers, second tier and clock are all the schedule's. */
export class Story {
  readonly #schedule: Schedule
  readonly #clock: VirtualClock
  readonly #verdict = new Verdict()
  readonly #truth: Truth
  readonly #loads: Loads
  readonly #readers: Readers
  readonly #instances: readonly Instance[]
  readonly #calls: TierCall[] = []
  readonly #committed: Write[] = []
  readonly #invalidated: Write[] = []
  /** What becomes of the next calls to the second tier. */
  #fates: TierFate[] = []
  #names = 0
  #timers = 0

  constructor(source: Source, schedule: Schedule) {
    this.#schedule = schedule
    // Every other one: were each early, a timer set again for what is left of its millisecond would fire for ever.
    this.#clock = new VirtualClock({ earlyMs: () => (this.#timers++ % 2) * schedule.earlyMs })
    this.#truth = new Truth(schedule.start)
    const options = optionsOf(schedule)
    const parts = { clock: this.#clock, truth: this.#truth, verdict: this.#verdict, ...options }
    this.#loads = new Loads(parts)
    this.#readers = new Readers({ ...parts, loads: this.#loads })
    const place = schedule.place === 'alone' ? undefined : this.#furnish(new TierPlace(this.#clock))
    this.#instances = Array.from({ length: schedule.place === 'shared' ? 2 : 1 }, (_, number) => {
      const tier = place?.connect()
      if (tier) tier.onCall = call => this.#onCall(call)
      return new Instance(source, {
        number,
        clock: this.#clock,
        tier,
        options,
        jitter: schedule.jitterRatio,
        start: schedule.start,
        now: () => this.#truth.now,
        load: (instance, asks, run) => this.#loads.begin(instance, asks, run),
      })
    })
  }

  async play(): Promise<Verdict> {
    const { steps, ways, calls, inFirst } = this.#schedule
    for (const instance of this.#instances)
      for (const question of inFirst) this.#readers.read(instance, question)
    await promisesSettled()
    this.#loads.arePrompt = false
    this.#loads.ways = [...ways]
    this.#fates = [...calls]
    for (const { move, turns } of steps) {
      await this.#take(move)
      for (let turn = 0; turn < turns && turns < ALL_TURNS; turn++) await Promise.resolve()
      if (turns < ALL_TURNS) continue
      await promisesSettled()
      this.#readers.expectAbortedGone()
    }
    await this.#comeToRest()
    return this.#verdict
  }

  /** Everything that is open ends, and nothing goes wrong any more. */
  async #comeToRest(): Promise<void> {
    this.#fates = []
    while (this.#committed.length > 0) this.#invalidate(0)
    while (this.#invalidated.length > 0) this.#acknowledge(0)
    this.#loads.answerAll()
    await this.#advance(20_000)
    for (const instance of this.#instances) instance.hearAll()
    this.#readers.expectGone()
    this.#loads.expectTold()
    for (const instance of this.#instances) {
      await expectWhole(instance, {
        clock: this.#clock,
        verdict: this.#verdict,
        options: optionsOf(this.#schedule),
      })
      for (const question of ['a', 'b', 'c', 'ab']) this.#readers.read(instance, question)
    }
    await this.#advance(20_000)
    this.#readers.expectGone()
    for (const { cache } of this.#instances) {
      if (cache.tally.inFlight !== 0)
        this.#verdict.blame('rest', `${cache.tally.inFlight} loads are in flight`)
    }
    const timers = this.#clock.pendingTimers
    if (timers > 0) this.#verdict.blame('rest', `${timers} timers are left`)
  }

  async #take(move: Move): Promise<void> {
    const instance = this.#at('at' in move ? move.at : 0)
    switch (move.do) {
      case 'read':
        return this.#readers.read(instance, move.question, move.leaves)
      case 'peek':
        return this.#readers.peek(instance, move.question)
      case 'batch':
        return this.#readers.batch(instance, move.questions, move.leaves)
      case 'abort':
        return this.#readers.abort(move.which)
      case 'commit':
        return this.#commit(instance, move.records)
      case 'invalidate':
        return this.#invalidate(move.which)
      case 'acknowledge':
        return this.#acknowledge(move.which)
      case 'write':
        this.#commit(instance, move.records)
        this.#invalidate(-1)
        return this.#acknowledge(-1)
      case 'forget':
        return this.#forget(instance, move)
      case 'snapshot':
        return this.#loads.look(move.which)
      case 'answer':
        return this.#loads.answer(move.which, move.how)
      case 'tier':
        return this.#endCall(move)
      case 'news':
        return move.how === 'tell' ? instance.hear(move.which) : instance.loseNews()
      case 'evict':
        return void instance.readFiller(`${this.#names++}`).catch(() => undefined)
      case 'advance':
        this.#clock.setWallMs(this.#clock.wallMs() - move.wallBackMs)
        return this.#advance(move.ms)
      case 'ripen':
        await this.#advance(520)
        return this.#readers.peek(instance, move.question)
      case 'stall':
        return this.#stall(move)
    }
  }

  #at(index: number): Instance {
    const instance = chosen(this.#instances, index)
    if (instance === undefined) throw new RangeError('there is no instance')
    return instance
  }

  async #advance(ms: number): Promise<void> {
    await this.#clock.advanceAsync(ms)
    this.#loads.quietMs = this.#clock.nowMs()
  }

  #stall({ ms, which, how }: Move & { do: 'stall' }): void {
    this.#clock.block(ms)
    this.#readers.stalled(ms)
    this.#clock.turn(() => this.#loads.answer(which, how))
  }

  #commit(instance: Instance, records: readonly string[]): void {
    this.#committed.push({ instance, versions: this.#truth.commit(records) })
  }

  #invalidate(which: number): void {
    const write = taken(this.#committed, which)
    if (write === undefined) return
    write.instance.invalidate(Object.keys(write.versions).map(tagOf))
    this.#invalidated.push(write)
  }

  #acknowledge(which: number): void {
    const write = taken(this.#invalidated, which)
    write?.instance.acknowledge(write.versions)
  }

  #forget(instance: Instance, { records, others }: Move & { do: 'forget' }): void {
    const tags = Array.from({ length: others }, () => `other:${this.#names++}`)
    instance.invalidate([...records.map(tagOf), ...tags])
  }

  #endCall({ which, how }: Move & { do: 'tier' }): void {
    if (how === 'apply') return void chosen(this.#calls, which)?.apply()
    const call = taken(this.#calls, which)
    if (how === 'answer') return call?.answer()
    if (how === 'apply and fail') call?.apply()
    call?.fail()
  }

  #onCall(call: TierCall): void {
    const fate = this.#fates.shift() ?? 'answer'
    if (fate === 'answer') return call.answer()
    if (fate === 'apply and hold') call.apply()
    this.#calls.push(call)
  }

  /** Puts into the second tier what somebody may have read before the story begins, under each copy's key. */
  #furnish(place: TierPlace): TierPlace {
    const { inSecond, hot, start } = this.#schedule
    for (const question of inSecond) {
      const versions = pick(start, recordsOf(question))
      const isThere = Object.values(versions).some(version => version > 0)
      const text = JSON.stringify(isThere ? { value: { load: -1, versions } } : {})
      for (const key of hot ? [question, `${question}#0`, `${question}#1`] : [question]) {
        const answer = place.get(key)
        if (answer.kind === 'found') continue
        place.put(key, text, { tags: recordsOf(question).map(tagOf), ttlMs: 60_000, ticket: answer.ticket })
      }
    }
    return place
  }
}

function optionsOf(schedule: Schedule): CacheOptions {
  const { maxBytes, negativeSeconds, refreshAheadRatio, jitterRatio, waitTimeoutMs, maxConcurrentLoads } =
    schedule
  return {
    ...cacheOptions.parse({}),
    l1Seconds: 1,
    maxEntryBytes: 1_024,
    ...{ maxBytes, negativeSeconds, refreshAheadRatio, jitterRatio, waitTimeoutMs, maxConcurrentLoads },
    hotKeys: { share: 0.01, minSamples: schedule.hot ? 1 : 1_000_000, windowMs: 10_000, replicas: 2 },
  }
}
