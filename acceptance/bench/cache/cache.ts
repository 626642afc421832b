import { type Bench, type Figure, median } from '../figure.ts'
import type { Open, SyncContender } from './contender.ts'
import { besideFloor, PLAIN_LRU, promisedHits, type Rate, syncHits, TIMED_LRU } from './hit-path.ts'
import { hotKeyFigures } from './hot-keys.ts'
import { PEERS } from './peers.ts'
import { staleReads } from './stale-reads.ts'
import { storm } from './storm.ts'
import { table, whole } from './table.ts'

export interface Ours {
  readonly open: Open
  readonly sync: SyncContender
}

type Say = (line: string) => void

/**
 * The coalescing cache beside its peers, in one process and one run: what a hit costs, what a storm on one key costs,
 * and how often a reader is told what a writer had already replaced. The tables show everyone; the figures are ours,
 * and one of them shows that the schedule which finds nothing in ours does find something.
 */
export function cacheBench(ours: Ours): Bench {
  const opens = [ours.open, ...PEERS]
  return {
    name: 'cache',
    async run({ short, say }) {
      return [
        ...(await hits(ours, opens, { short, say })),
        ...(await oneKey(opens, { short, say })),
        ...(await interleaved(opens, { short, say })),
        ...(await hotKeyFigures({ short })),
      ]
    },
  }
}

interface Told {
  readonly short: boolean
  readonly say: Say
}

async function hits(ours: Ours, opens: readonly Open[], { short, say }: Told): Promise<Figure[]> {
  const rounds = short ? { rounds: 1, roundMs: 100 } : { rounds: 5, roundMs: 400 }
  const sync = await syncHits([ours.sync, TIMED_LRU, PLAIN_LRU], rounds)
  const promised = await promisedHits(opens, rounds)
  const [mine, floor] = sync
  if (mine === undefined || floor === undefined) throw new RangeError('nothing was measured')
  const row = (how: string) => (rate: Rate) => [
    rate.name,
    how,
    whole(median(rate.perSecond)),
    besideFloor(rate, floor).toFixed(3),
  ]
  const rows = [...sync.map(row('synchronous')), ...promised.map(row('promise'))]
  for (const line of table(['hit path', '', 'gets/s', `× ${floor.name}`], rows)) say(line)
  return [
    {
      what: 'hits, synchronous',
      measured: median(mine.perSecond),
      unit: 'gets/s',
      wanted: { atLeast: 1_000_000 },
    },
    {
      what: `hits beside bare ${floor.name}`,
      measured: besideFloor(mine, floor),
      unit: '×',
      wanted: { atLeast: 0.5 },
    },
  ]
}

async function oneKey(opens: readonly Open[], { short, say }: Told): Promise<Figure[]> {
  const readers = short ? 2_000 : 20_000
  const readings = await storm(opens, { readers, rounds: short ? 1 : 3 })
  const rows = readings.map(({ name, loads, allMs }) => [name, whole(loads), whole(allMs)])
  for (const line of table([`storm of ${whole(readers)}`, 'loads', 'ms for all'], rows)) say(line)
  const loads = readings[0]?.loads ?? Number.NaN
  return [
    { what: `loads for ${readers} readers of a key`, measured: loads, unit: 'loads', wanted: { atMost: 1 } },
  ]
}

async function interleaved(opens: readonly Open[], { short, say }: Told): Promise<Figure[]> {
  const readings = await staleReads(opens, {
    reads: short ? 2_000 : 20_000,
    rounds: short ? 1 : 3,
    seed: SEED,
  })
  const rows = readings.map(({ name, reads, writes, loads, stale, keysLeftStale, keys }) => [
    name,
    whole(reads),
    whole(writes),
    whole(loads),
    whole(stale),
    `${((100 * stale) / reads).toFixed(2)} %`,
    `${keysLeftStale} of ${keys}`,
  ])
  const head = ['interleaved', 'reads', 'writes', 'loads', 'stale reads', 'share', 'keys left stale']
  for (const line of table(head, rows)) say(line)
  const [mine, ...peers] = readings
  if (mine === undefined) throw new RangeError('nothing was measured')
  const found = peers.reduce((sum, { stale }) => sum + stale, 0)
  return [
    { what: 'stale reads', measured: mine.stale, unit: 'reads', wanted: { atMost: 0 } },
    { what: 'keys left stale', measured: mine.keysLeftStale, unit: 'keys', wanted: { atMost: 0 } },
    // A cache that answers from memory never is never stale either.
    {
      what: 'reads that became loads',
      measured: (100 * mine.loads) / mine.reads,
      unit: '%',
      wanted: { atMost: 20 },
    },
    {
      what: 'stale reads that the same schedule finds in peers',
      measured: found,
      unit: 'reads',
      wanted: { atLeast: 1 },
    },
  ]
}

const SEED = 20_261_130
