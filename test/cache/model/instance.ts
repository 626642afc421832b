import type { Cache, CachedQuery, Loaded, LoadRun } from '../../../src/cache/index.ts'
import type { CacheOptions } from '../../../src/cache/options.ts'
import { Channel, type Clock } from '../../../src/runtime/index.ts'
import type { MemoryTier, TierNews } from '../../support/memory-tier.ts'
import { taken } from './choose.ts'
import type { Load, Told } from './load.ts'
import { latest, pick, RECORDS, recordsOf, tagOf, type Versions } from './truth.ts'

/** The cache under test: as it stands, or a variant of it. */
export interface Source {
  readonly Cache: typeof Cache
}

/** One process with a cache, and what has been acknowledged in it. */
export class Instance {
  readonly cache: Cache
  readonly query: CachedQuery<string, Told>
  readonly tier: MemoryTier | undefined
  readonly loads: Load[] = []
  acknowledged: Versions
  /** Invalidations that its cache has seen. */
  moves = 0
  /** Loads of what is none of the records; each is answered at once, unless it is to be held. */
  readonly fillers: { held: boolean; started: number; readonly open: (() => void)[] } = {
    held: false,
    started: 0,
    open: [],
  }
  readonly #fillers: CachedQuery<string, string>
  /** What the second tier has to tell, and the versions of what it is about when it came to count. */
  readonly #news: { readonly news: TierNews; readonly versions: Versions }[] = []

  constructor({ Cache }: Source, facts: InstanceFacts) {
    const { clock, tier, options, jitter } = facts
    this.tier = tier
    this.acknowledged = facts.start
    this.cache = new Cache(options, {
      clock,
      channels: { hotKey: new Channel() },
      random: () => jitter,
      ...(tier && { second: { tier, instance: `instance ${facts.number}` } }),
    })
    this.query = this.cache.query({
      keyOf: question => question,
      tagsOf: question => recordsOf(question).map(tagOf),
      load: (asks, run) => facts.load(this, asks, run),
    })
    this.#fillers = this.cache.query({
      keyOf: name => `filler:${facts.number}:${name}`,
      tagsOf: () => ['filler'],
      load: () => this.#fill(),
    })
    if (!tier) return
    tier.onNews = news => {
      const tags = news.kind === 'lost' ? RECORDS.map(tagOf) : news.tags
      const about = RECORDS.filter(record => tags.includes(tagOf(record)))
      this.#news.push({ news, versions: pick(facts.now(), about) })
    }
  }

  invalidate(tags: readonly string[]): void {
    this.moves++
    this.cache.invalidate(tags)
  }

  acknowledge(versions: Versions): void {
    this.acknowledged = latest(this.acknowledged, versions)
  }

  /** From the moment on that it is told, what another one invalidated is as if it had been acknowledged here. */
  hear(which: number): void {
    const heard = taken(this.#news, which)
    if (heard === undefined) return
    this.moves++
    this.tier?.tell(heard.news)
    this.acknowledge(heard.versions)
  }

  hearAll(): void {
    while (this.#news.length > 0) this.hear(0)
  }

  /** The news are lost, and then it is told that some may have been. */
  loseNews(): void {
    const lost = this.#news.splice(0)
    if (lost.length === 0) return
    this.moves++
    this.tier?.tell({ kind: 'lost' })
    for (const { versions } of lost) this.acknowledge(versions)
  }

  /** Reads what is none of the records. */
  readFiller(name: string): Promise<string | undefined> {
    return this.#fillers.read(name)
  }

  peekFiller(name: string): Loaded<string> | undefined {
    return this.#fillers.peek(name)
  }

  async #fill(): Promise<Loaded<string>[]> {
    this.fillers.started++
    if (this.fillers.held) await new Promise<void>(resolve => this.fillers.open.push(resolve))
    return [{ value: 'filler' }]
  }
}

interface InstanceFacts {
  readonly number: number
  readonly clock: Clock
  readonly tier: MemoryTier | undefined
  readonly options: CacheOptions
  readonly jitter: number
  readonly start: Versions
  readonly now: () => Versions
  readonly load: (
    instance: Instance,
    asks: readonly string[],
    run: LoadRun,
  ) => Promise<readonly Loaded<Told>[]>
}
