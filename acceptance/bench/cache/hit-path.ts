import { LRUCache } from 'lru-cache'
import { median } from '../figure.ts'
import { alternating, MAX_ENTRIES, type Open, type SyncContender, TTL_SECONDS } from './contender.ts'

/**
 * Gets per second when everything asked for is resident: 1,000 keys in turn, one caller, no load. The synchronous
 * look-ups and the floor, bare lru-cache, are measured apart from those that answer with a promise: a promise alone
 * costs more than a look-up.
 */
export interface Rate {
  readonly name: string
  /** Of each round, in order: round for round they stood beside each other. */
  readonly perSecond: readonly number[]
}

export interface Rounds {
  readonly rounds: number
  readonly roundMs: number
}

// Until others have passed through it, the loop that measures is compiled for the first contender alone, which
// flattered it by a third (42 million gets/s instead of 30).
const WARM_UP = 0
const KEYS = 1_000
const VALUE = JSON.stringify({ id: 'order', items: 'x'.repeat(200) })
const ENTRIES: ReadonlyMap<string, string> = new Map(
  Array.from({ length: KEYS }, (_, n) => [`order:v1:tenant:full:${n}`, VALUE]),
)

/**
 * Bare lru-cache as a tier needs it, bounded in bytes and never late. It is the floor: asking the clock at every look
 * already halves the rate of lru-cache itself (14 million gets/s; 31 million without).
 */
export const TIMED_LRU: SyncContender = {
  name: 'lru-cache with ttl',
  fill: entries => {
    const cache = new LRUCache<string, string>({
      max: MAX_ENTRIES,
      maxSize: 64 * 1024 * 1024,
      sizeCalculation: (value, key) => key.length + value.length,
      ttl: TTL_SECONDS * 1000,
      ttlResolution: 0,
    })
    for (const [key, value] of entries) cache.set(key, value)
    return key => cache.get(key)
  },
}

/** Bare lru-cache with a bound alone: nothing ever ends. */
export const PLAIN_LRU: SyncContender = {
  name: 'lru-cache without',
  fill: entries => {
    const cache = new LRUCache<string, string>({ max: MAX_ENTRIES })
    for (const [key, value] of entries) cache.set(key, value)
    return key => cache.get(key)
  },
}

export async function promisedHits(
  opens: readonly Open[],
  { rounds, roundMs }: Rounds,
): Promise<readonly Rate[]> {
  const contenders = opens.map(open => ({ contender: open(), perSecond: [] as number[] }))
  const absent = async (): Promise<string> => {
    throw new Error('a resident key was loaded')
  }
  for (const { contender } of contenders) {
    for (const [key, value] of ENTRIES) await contender.get(key, async () => value)
  }
  const keys = [...ENTRIES.keys()]
  for (const { contender: one, round } of alternating(contenders, 1 + rounds)) {
    const { contender, perSecond } = one
    let gets = 0
    const startedMs = performance.now()
    while (performance.now() - startedMs < roundMs) {
      for (const key of keys) await contender.get(key, absent)
      gets += keys.length
      // Hits settle without ever leaving the queue of promises: timers of a contender would wait for the whole round.
      await new Promise(setImmediate)
    }
    if (round !== WARM_UP) perSecond.push(gets / ((performance.now() - startedMs) / 1000))
  }
  for (const { contender } of contenders) await contender.close()
  return contenders.map(({ contender: { name }, perSecond }) => ({ name, perSecond }))
}

export async function syncHits(
  opens: readonly SyncContender[],
  { rounds, roundMs }: Rounds,
): Promise<readonly Rate[]> {
  const contenders = await Promise.all(
    opens.map(async ({ name, fill }) => ({ name, get: await fill(ENTRIES), perSecond: [] as number[] })),
  )
  const keys = [...ENTRIES.keys()]
  for (const { contender, round } of alternating(contenders, 1 + rounds)) {
    const { name, get, perSecond } = contender
    let gets = 0
    let hits = 0
    const startedMs = performance.now()
    while (performance.now() - startedMs < roundMs) {
      for (const key of keys) if (get(key) !== undefined) hits++
      gets += keys.length
    }
    if (round !== WARM_UP) perSecond.push(gets / ((performance.now() - startedMs) / 1000))
    if (hits !== gets) throw new Error(`${name} lost ${gets - hits} resident keys`)
  }
  return contenders.map(({ name, perSecond }) => ({ name, perSecond }))
}

/** How many times the rate of `floor`: the ratio within a round, and of the rounds the median. */
export function besideFloor(rate: Rate, floor: Rate): number {
  return median(rate.perSecond.map((perSecond, round) => perSecond / (floor.perSecond[round] ?? Number.NaN)))
}
