import { Cache, cacheChannels, type Loaded, type LoadRun } from '../../src/cache/index.ts'
import { type CacheOptions, cacheOptions } from '../../src/cache/options.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import type { StagedTier } from './staged-tier.ts'

/** One load, from its loader's side; it ends when the test says so. */
export class Load {
  readonly asks: readonly string[]
  readonly run: LoadRun
  readonly #answer = Promise.withResolvers<readonly Loaded<unknown>[]>()

  constructor(asks: readonly string[], run: LoadRun) {
    this.asks = asks
    this.run = run
  }

  get answer(): Promise<readonly Loaded<unknown>[]> {
    return this.#answer.promise
  }

  /** Brings a value for each question; undefined where there is no such thing. */
  bring(...values: unknown[]): void {
    this.#answer.resolve(values.map(value => ({ value })))
  }

  /** As `bring`, with values that are for those who wait now. */
  pass(...values: unknown[]): void {
    this.#answer.resolve(values.map(value => ({ value, passing: true })))
  }

  fail(error: unknown): void {
    this.#answer.reject(error)
  }

  /** Does as a store does: gives up when it is told to stop. */
  obey(): void {
    this.run.signal.addEventListener('abort', () => this.fail(this.run.signal.reason), { once: true })
  }
}

// Nothing by chance, and nothing behind the reader's back; what tests either, says so.
const STEADY = { jitterRatio: 0, refreshAheadRatio: 0 }

/** A cache on a virtual clock whose loads are the test's; a question is its own key and its own only tag. */
export function cached(
  options: Partial<CacheOptions> = {},
  deps: { second?: StagedTier; random?: () => number } = {},
) {
  const clock = new VirtualClock()
  const channels = cacheChannels()
  const { second, random = () => 0 } = deps
  const cache = new Cache(cacheOptions.parse({ ...STEADY, ...options }), {
    clock,
    channels,
    random,
    ...(second && { second: { tier: second, instance: 'instance-1' } }),
  })
  const loads: Load[] = []
  const loader = {
    /** Runs inside the loader, which throws what this throws. */
    onLoad: (_load: Load): void => {},
  }
  const query = cache.query<string, unknown>({
    keyOf: asked => asked,
    tagsOf: asked => [asked],
    load: (asks, run) => {
      const load = new Load(asks, run)
      loads.push(load)
      loader.onLoad(load)
      return load.answer
    },
  })
  /** Reads, and has the load bring `value`. */
  const fill = async (asked: string, value: unknown) => {
    const reading = query.read(asked)
    await promisesSettled()
    loads.at(-1)?.bring(value)
    await reading
  }
  return { clock, cache, channels, query, loads, loader, fill, tally: cache.tally }
}

/** What has become of a promise up to now. */
export interface Watched {
  fate: 'open' | { readonly value: unknown } | { readonly threw: unknown }
}

/** Watches from here on, so that no rejection is ever without a reader. */
export function watch(promise: Promise<unknown>): Watched {
  const watched: Watched = { fate: 'open' }
  promise.then(
    value => {
      watched.fate = { value }
    },
    (threw: unknown) => {
      watched.fate = { threw }
    },
  )
  return watched
}
