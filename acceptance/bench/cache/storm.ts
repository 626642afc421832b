import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../figure.ts'
import { within } from './bounded.ts'
import { alternating, type Open, tagOf } from './contender.ts'

/** One key goes out of date, and all its readers ask at once: loads started, and the time until the last has answer. */
export interface StormReading {
  readonly name: string
  /** The most of any round. */
  readonly loads: number
  /** Median of the rounds, in milliseconds. */
  readonly allMs: number
}

const LOAD_MS = 10
const LIMIT_MS = 30_000

/** In the order of `opens`. */
export async function storm(
  opens: readonly Open[],
  { readers, rounds }: { readers: number; rounds: number },
): Promise<readonly StormReading[]> {
  const readings = new Map<string, { loads: number[]; allMs: number[] }>()
  for (const { contender: open } of alternating(opens, rounds)) {
    const { name, loads, allMs } = await once(open, readers)
    const reading = readings.get(name) ?? { loads: [], allMs: [] }
    reading.loads.push(loads)
    reading.allMs.push(allMs)
    readings.set(name, reading)
  }
  return [...readings].map(([name, { loads, allMs }]) => ({
    name,
    loads: Math.max(...loads),
    allMs: median(allMs),
  }))
}

async function once(open: Open, readers: number): Promise<StormReading> {
  const contender = open()
  const key = 'hot'
  await contender.get(key, async () => 'old')
  await contender.invalidate(tagOf(key))
  let loads = 0
  const load = async () => {
    loads++
    await sleep(LOAD_MS)
    return 'new'
  }
  const startedMs = performance.now()
  const all = Promise.all(Array.from({ length: readers }, () => contender.get(key, load)))
  const answers = await within(LIMIT_MS, `the readers of ${contender.name}`, all)
  const allMs = performance.now() - startedMs
  if (answers.includes('old')) throw new Error(`${contender.name} answered what it had put out of date`)
  await contender.close()
  return { name: contender.name, loads, allMs }
}
