import { within } from './bounded.ts'
import { alternating, type Contender, type Open, tagOf } from './contender.ts'
import { type Random, seededRandom } from './seeded-random.ts'

/**
 * Readers and writers of few keys, interleaved at random, against a source of truth. A load sees the version of the
 * moment when it starts, as a query does, and answers some turns of the loop later. A writer commits, invalidates, and
 * when that is done its write is acknowledged. A read is stale if it returns a version older than one that was
 * acknowledged before the read began.
 *
 * The seed decides who reads and writes what, when, and how long each load takes, so every contender meets the same
 * schedule; only which reads become loads is its own doing.
 */
export interface StaleReading {
  readonly name: string
  readonly reads: number
  readonly writes: number
  /** Of `reads`; a cache that never answered from memory would load each. */
  readonly loads: number
  readonly stale: number
  /** Keys whose stored value is still out of date when all is quiet, and stays so until its end or the next write. */
  readonly keysLeftStale: number
  readonly keys: number
}

const KEYS = Array.from({ length: 16 }, (_, n) => `order:${n}`)
const READS_PER_TURN = 2
const WRITES_PER_TURN = 0.1
const MAX_LOAD_TURNS = 20
const MAX_COMMIT_TURNS = 3
const MAX_MICROTASKS = 15
const LIMIT_MS = 30_000
// A turn carries other work, as a server's does. Without it some twenty turns pass within one millisecond, and a peer
// that compares wall clocks in milliseconds takes everything stored in the millisecond of an invalidation for old.
const TURN_MS = 0.1

/** The sums of `rounds`, each with a schedule of its own, in the order of `opens`. */
export async function staleReads(
  opens: readonly Open[],
  { reads, rounds, seed }: { reads: number; rounds: number; seed: number },
): Promise<readonly StaleReading[]> {
  const sums = new Map<string, StaleReading>()
  for (const { contender: open, round } of alternating(opens, rounds)) {
    const reading = await interleave(open(), reads, seed + round)
    const sum = sums.get(reading.name)
    sums.set(reading.name, sum === undefined ? reading : added(sum, reading))
  }
  return [...sums.values()]
}

function added(a: StaleReading, b: StaleReading): StaleReading {
  return {
    name: a.name,
    reads: a.reads + b.reads,
    writes: a.writes + b.writes,
    loads: a.loads + b.loads,
    stale: a.stale + b.stale,
    keysLeftStale: a.keysLeftStale + b.keysLeftStale,
    keys: a.keys + b.keys,
  }
}

async function interleave(contender: Contender, reads: number, seed: number): Promise<StaleReading> {
  const schedule = seededRandom(seed)
  const truth = new Truth(seededRandom(~seed))
  const counts = { reads: 0, writes: 0, stale: 0 }

  const read = async (key: string): Promise<void> => {
    counts.reads++
    if (await truth.isStale(contender, key)) counts.stale++
  }
  const write = async (key: string, commitTurns: number): Promise<void> => {
    counts.writes++
    const version = truth.commit(key)
    await turns(commitTurns)
    await contender.invalidate(tagOf(key))
    truth.acknowledge(key, version)
    await read(key)
  }

  const running: Promise<void>[] = []
  while (counts.reads < reads) {
    for (let n = schedule.below(2 * READS_PER_TURN + 1); n > 0; n--) {
      const key = schedule.oneOf(KEYS)
      running.push(microtasks(schedule.below(MAX_MICROTASKS + 1)).then(() => read(key)))
    }
    if (schedule.next() < WRITES_PER_TURN) {
      const [key, commitTurns] = [schedule.oneOf(KEYS), schedule.below(MAX_COMMIT_TURNS + 1)]
      running.push(microtasks(schedule.below(MAX_MICROTASKS + 1)).then(() => write(key, commitTurns)))
    }
    const untilMs = performance.now() + TURN_MS
    await turns(1)
    while (performance.now() < untilMs);
  }
  await within(LIMIT_MS, `the reads of ${contender.name}`, Promise.all(running))

  const loads = truth.loads
  const left = await Promise.all(KEYS.map(key => truth.isStale(contender, key)))
  await contender.close()
  return {
    name: contender.name,
    ...counts,
    loads,
    keysLeftStale: left.filter(Boolean).length,
    keys: KEYS.length,
  }
}

/** The store behind the cache: the newest version of each key, and the newest whose writer was told. */
class Truth {
  loads = 0
  readonly #latency: Random
  readonly #committed = new Map<string, number>()
  readonly #acknowledged = new Map<string, number>()

  constructor(latency: Random) {
    this.#latency = latency
  }

  commit(key: string): number {
    const version = this.#versionOf(key) + 1
    this.#committed.set(key, version)
    return version
  }

  acknowledge(key: string, version: number): void {
    this.#acknowledged.set(key, Math.max(version, this.#acknowledged.get(key) ?? 0))
  }

  async isStale(contender: Contender, key: string): Promise<boolean> {
    const owed = this.#acknowledged.get(key) ?? 0
    const version = Number(await contender.get(key, () => this.#load(key)))
    if (!(version <= this.#versionOf(key))) throw new Error(`${contender.name} made up version ${version}`)
    return version < owed
  }

  async #load(key: string): Promise<string> {
    this.loads++
    const snapshot = this.#versionOf(key)
    await turns(1 + this.#latency.below(MAX_LOAD_TURNS))
    return String(snapshot)
  }

  #versionOf(key: string): number {
    return this.#committed.get(key) ?? 0
  }
}

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise(setImmediate)
}

async function microtasks(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await undefined
}
