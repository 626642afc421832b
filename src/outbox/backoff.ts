import { LONGEST_WAIT_MS } from '../store/index.ts'
import type { OutboxOptions } from './options.ts'

/**
 * How long an event waits after its `attempts`th failed delivery: exponential, jittered over its upper half so that
 * what failed together does not come back together, and never less than the consumer asked for.
 */
export function retryDelayMs(
  { retryDelayMs, retryMaxDelayMs }: Pick<OutboxOptions, 'retryDelayMs' | 'retryMaxDelayMs'>,
  attempts: number,
  askedMs: number,
  random: () => number,
): number {
  const fullMs = Math.min(retryMaxDelayMs, retryDelayMs * 2 ** (attempts - 1))
  const ownMs = fullMs * (0.5 + random() / 2)
  return Math.round(Math.max(ownMs, Math.min(askedMs, LONGEST_WAIT_MS)))
}
