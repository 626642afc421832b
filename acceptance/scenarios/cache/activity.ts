import type { Client } from '../../support/client.ts'
import { Metrics } from '../../support/metrics.ts'

/** What the cache counted. */
export interface Activity {
  readonly hits: number
  readonly negatives: number
  readonly misses: number
  /** Loads that brought an answer. */
  readonly loads: number
  /** Loads that did not. */
  readonly troubles: number
  readonly leaders: number
  readonly followers: number
  readonly fillsRefused: number
  readonly invalidations: number
}

/** What `act` gave, and what the cache counted meanwhile; `act` may ask how far that is. Only where nobody else asks. */
export async function watched<Given>(
  admin: Client,
  act: (soFar: () => Promise<Activity>) => Promise<Given>,
): Promise<[given: Given, activity: Activity]> {
  const before = await counted(admin)
  const soFar = async () => {
    const moved = Object.entries(await counted(admin)).map(([name, count]) => {
      return [name, count - before[name as keyof Activity]]
    })
    return Object.fromEntries(moved) as Activity
  }
  const given = await act(soFar)
  return [given, await soFar()]
}

async function counted(admin: Client): Promise<Activity> {
  const metrics = await Metrics.read(admin)
  const requests = (result: string) => metrics.sum('punctual_cache_requests_total', { tier: 'l1', result })
  const loads = (result: string) => metrics.sum('punctual_cache_loads_total', { result })
  const flights = (role: string) => metrics.sum('punctual_cache_flights_total', { role })
  return {
    hits: requests('hit'),
    negatives: requests('negative'),
    misses: requests('miss'),
    loads: loads('ok'),
    troubles: loads('failed') + loads('timeout') + loads('refused'),
    leaders: flights('leader'),
    followers: flights('follower'),
    fillsRefused: metrics.sum('punctual_cache_fills_refused_total'),
    invalidations: metrics.sum('punctual_cache_invalidations_total'),
  }
}
