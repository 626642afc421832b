import { Cache, cacheChannels } from '../../../src/cache/index.ts'
import { cacheOptions } from '../../../src/cache/options.ts'
import { systemClock } from '../../../src/runtime/index.ts'
import type { Ours } from './cache.ts'
import { TTL_SECONDS, tagOf } from './contender.ts'

interface Asked {
  readonly key: string
  readonly load: () => Promise<string>
}

/** Our cache as the product uses it, hot-key counting and all, with time enough for each load. */
function open() {
  const options = cacheOptions.parse({
    l1Seconds: TTL_SECONDS,
    maxBytes: 64 * 1024 * 1024,
    waitTimeoutMs: 30_000,
    loadTimeoutMs: 30_000,
    queryTimeoutMs: 29_000,
  })
  const cache = new Cache(options, { clock: systemClock, channels: cacheChannels() })
  const query = cache.query<Asked, string>({
    keyOf: ({ key }) => key,
    tagsOf: ({ key }) => [tagOf(key)],
    load: asks => Promise.all(asks.map(async ({ load }) => ({ value: await load() }))),
  })
  return { cache, query }
}

export const ours: Ours = {
  open: () => {
    const { cache, query } = open()
    return {
      name: 'Punctual',
      get: async (key, load) => (await query.read({ key, load })) ?? '',
      invalidate: tag => cache.invalidate([tag]),
      close: async () => cache.close(),
    }
  },
  sync: {
    name: 'Punctual',
    fill: async entries => {
      const { cache } = open()
      const query = cache.query<string, string>({
        keyOf: key => key,
        tagsOf: key => [tagOf(key)],
        load: async keys => keys.map(key => ({ value: entries.get(key) })),
      })
      for (const key of entries.keys()) await query.read(key)
      return key => query.peek(key)?.value
    },
  },
}
