import { HotKeys } from '../../../src/cache/hot-keys.ts'
import { systemClock } from '../../../src/runtime/index.ts'
import { type Figure, median } from '../figure.ts'
import { heapAfterGc } from '../heap.ts'
import { seededRandom } from './seeded-random.ts'

/** What an observation costs when every key is another, and what the counters take after a million of them. */
export async function hotKeyFigures({ short }: { short: boolean }): Promise<Figure[]> {
  const keys = short ? 100_000 : 1_000_000
  const rounds = short ? 1 : 5
  const flood: number[] = []
  const skewed: number[] = []
  // Not measured: the code is compiled on the way.
  nsPerObservation(keys, n => n)
  for (let round = 0; round < rounds; round++) {
    flood.push(nsPerObservation(keys, n => n))
    // Most reads fall on few keys, as in Zipf's law.
    const random = seededRandom(SEED + round)
    skewed.push(nsPerObservation(keys, () => Math.floor(keys ** random.next())))
  }
  const what = `observation of a key, ${keys} of them`
  return [
    { what: `${what}, all distinct`, measured: median(flood), unit: 'ns', wanted: { atMost: 200 } },
    { what: `${what}, skewed`, measured: median(skewed), unit: 'ns', wanted: { atMost: 200 } },
    {
      what: 'memory of the counters',
      measured: await bytesAfter(keys),
      unit: 'bytes',
      wanted: { atMost: 65_536 },
    },
  ]
}

const SEED = 20_261_130
const KEYS_AT_ONCE = 5_000
const LOOKED_UP = new Set<string>(['another'])
const COUNTERS_WEIGHED = 32
const WINDOW = { share: 0.1, minSamples: 1_000, windowMs: 3_600_000 }

/** Only observing is timed. The keys are made just before, and have been looked up: a cache does both beforehand. */
function nsPerObservation(observations: number, nth: (n: number) => number): number {
  const hotKeys = new HotKeys(WINDOW, systemClock, () => {})
  let spentMs = 0
  for (let made = 0; made < observations; made += KEYS_AT_ONCE) {
    const keys = Array.from({ length: KEYS_AT_ONCE }, (_, n) => keyOf(nth(made + n)))
    for (const key of keys) if (LOOKED_UP.has(key)) throw new Error('nothing was put there')
    const startedMs = performance.now()
    for (const key of keys) hotKeys.observe(key)
    spentMs += performance.now() - startedMs
  }
  return (spentMs / observations) * 1e6
}

/** Of one among several, since the heap by itself moves by more than one takes. */
async function bytesAfter(observations: number): Promise<number> {
  const before = await heapAfterGc()
  const all = Array.from({ length: COUNTERS_WEIGHED }, () => new HotKeys(WINDOW, systemClock, () => {}))
  for (let n = 0; n < observations; n++) {
    const key = keyOf(n)
    for (const hotKeys of all) hotKeys.observe(key)
  }
  const bytes = (await heapAfterGc()) - before
  // Read afterwards, so that none can be collected before.
  if (all.some(({ count }) => count > 0)) throw new Error('a flood of distinct keys made one of them hot')
  return bytes / all.length
}

function keyOf(n: number): string {
  return `order:v1:tenant:full:01a22de7-98f1-72ee-810e-${String(n).padStart(12, '0')}`
}
