import { Counter, type Registry } from 'prom-client'
import type { Tally } from '../cache/index.ts'
import { readGauge } from './read-gauge.ts'

/** What the cache counts by itself, read at the moment of a scrape. */
export interface CacheGauges {
  readonly tally: Tally
  readonly hotKeys: number
}

/** A series of a counter: its labels, and how far it has come. */
type Series = readonly [labels: Record<string, string>, count: number]

export function cacheMetrics(registry: Registry, cache: CacheGauges): void {
  const { tally } = cache
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: string[], read: () => readonly Series[]) => {
    new Counter({
      name,
      help,
      labelNames,
      registers,
      collect() {
        this.reset()
        for (const [labels, count] of read()) this.inc(labels, count)
      },
    })
  }
  const plain = (name: string, help: string, read: () => number) =>
    counter(name, help, [], () => [[{}, read()]])
  const gauge = (name: string, help: string, read: () => number) => readGauge(registry, name, help, read)

  counter('punctual_cache_requests_total', 'Looks into a tier of the cache.', ['tier', 'result'], () => [
    ...series('result', tally.l1, { tier: 'l1' }),
    ...series('result', tally.l2, { tier: 'l2' }),
  ])
  counter(
    'punctual_cache_loads_total',
    'Loads, by how they ended; cancelled ones are not counted.',
    ['result'],
    () => series('result', tally.loads),
  )
  counter('punctual_cache_flights_total', 'Readers that started a load, and that joined one.', ['role'], () =>
    series('role', tally.flights),
  )
  plain(
    'punctual_cache_wait_timeouts_total',
    'Readers that waited for a load too long.',
    () => tally.waitTimeouts,
  )
  plain(
    'punctual_cache_fills_refused_total',
    'Loads that were out of date when they came.',
    () => tally.fillsRefused,
  )
  plain(
    'punctual_cache_invalidations_total',
    'Writes that put entries out of date.',
    () => tally.invalidations,
  )
  gauge('punctual_cache_in_flight', 'Loads in progress.', () => tally.inFlight)
  gauge('punctual_cache_hot_keys', 'Keys that take a large share of all reads.', () => cache.hotKeys)
}

function series(label: string, counts: object, labels: Record<string, string> = {}): Series[] {
  return Object.entries(counts).map(([name, count]) => [{ ...labels, [label]: name }, count as number])
}
