import { Channel } from '../runtime/index.ts'

export interface CacheChannels {
  /** A key became hot, or is no longer; `share` is of all reads of the window. */
  readonly hotKey: Channel<{ key: string; share: number; hot: boolean }>
}

export function cacheChannels(): CacheChannels {
  return { hotKey: new Channel() }
}
