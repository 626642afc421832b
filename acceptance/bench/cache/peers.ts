import { createCache } from 'async-cache-dedupe'
import { BentoCache, bentostore } from 'bentocache'
import { memoryDriver } from 'bentocache/drivers/memory'
import { Cacheable, CacheableHooks, createKeyv } from 'cacheable'
import { type Contender, keyOf, MAX_ENTRIES, type Open, TTL_SECONDS, tagOf } from './contender.ts'

/**
 * The peers, each used as its authors mean it and with the faster setting where there is a choice: in memory only, no
 * copies of values (they are strings), its own protection against stampedes, its own tags.
 */
export const PEERS: readonly Open[] = [openBentocache, openCacheableTags, openCacheableDelete, openDedupe]

/**
 * Its protection is always on: one mutex a key, and a second look under it. Grace, time-outs and the second tier are
 * off unless asked for; grace would answer with the old value by design.
 */
function openBentocache(): Contender {
  const cache = new BentoCache({
    default: 'memory',
    stores: {
      // Serialised entries are its default: JSON at every look. A tag, too, is an entry of this store.
      memory: bentostore().useL1Layer(memoryDriver({ serialize: false, maxItems: MAX_ENTRIES })),
    },
  })
  return {
    name: 'bentocache',
    get: (key, load) => cache.getOrSet({ key, factory: load, ttl: TTL_SECONDS * 1000, tags: [tagOf(key)] }),
    invalidate: async tag => {
      await cache.deleteByTag({ tags: [tag] })
    },
    close: () => cache.disconnectAll(),
  }
}

/**
 * `getOrSet`, which holds the protection, takes no tags; `set`, which does, has no protection. They meet in the hook
 * before a set, where `getOrSet` passes, too. Each hit then reads the tags' versions from the store.
 */
function openCacheableTags(): Contender {
  const cache = openCacheable({ tags: true })
  cache.onHook(CacheableHooks.BEFORE_SET, item => {
    item.tags = [tagOf(item.key)]
  })
  return {
    ...cacheableReads(cache),
    name: 'cacheable, tags',
    invalidate: async tag => {
      await cache.tags.invalidateTag(tag)
    },
  }
}

/** The same without its tags, as before it had any: hits are cheaper, and whoever writes must know the keys. */
function openCacheableDelete(): Contender {
  const cache = openCacheable({ tags: false })
  return {
    ...cacheableReads(cache),
    name: 'cacheable, delete',
    invalidate: async tag => {
      await cache.delete(keyOf(tag))
    },
  }
}

function openCacheable({ tags }: { tags: boolean }): Cacheable {
  // `useClone` is what the code reads; its pages say `useClones`. Unset, it clones each record at every look.
  const primary = createKeyv({ useClone: false, lruSize: MAX_ENTRIES })
  const cache = new Cacheable({ primary, ttl: TTL_SECONDS * 1000, tags })
  // It reports its own failures as events and answers undefined; unheard, they would pass for misses.
  cache.on('error', error => {
    throw error
  })
  return cache
}

function cacheableReads(cache: Cacheable): Pick<Contender, 'get' | 'close'> {
  return {
    get: async (key, load) => {
      const value = await cache.getOrSet(key, load)
      if (value === undefined) throw new Error(`cacheable has no value for ${key}`)
      return value
    },
    close: () => cache.disconnect(),
  }
}

interface Ask {
  readonly key: string
  readonly load: () => Promise<string>
}

/** Its protection is the map of running calls. References, its tags, need `invalidation` switched on. */
function openDedupe(): Contender {
  const cache = createCache({
    // Whole seconds only. `stale`, left at zero, would answer with the old value by design.
    ttl: TTL_SECONDS,
    // 1,024 entries is its default.
    storage: { type: 'memory', options: { size: MAX_ENTRIES, invalidation: true } },
  }).define(
    'read',
    {
      // A string needs no serialising; without this the key would be the JSON of the whole question.
      serialize: ({ key }: Ask) => key,
      references: ({ key }: Ask) => [tagOf(key)],
    },
    ({ load }: Ask) => load(),
  )
  return {
    name: 'async-cache-dedupe',
    get: (key, load) => cache.read({ key, load }),
    invalidate: tag => cache.invalidateAll(tag),
    close: () => cache.clear(),
  }
}
