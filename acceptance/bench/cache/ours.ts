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
      const { query } = open()
      const never = () => Promise.reject(new Error('a resident key was loaded'))
      for (const [key, value] of entries) await query.read({ key, load: async () => value })
      return key => query.peek({ key, load: never })?.value
    },
  },
}
