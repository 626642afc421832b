import { fullJitterGenerator, type IExponentialBackoffOptions } from 'cockatiel'
import { type Clock, sleep } from '../runtime/index.ts'
import { MIN_ATTEMPT_MS } from './attempt.ts'
import { isFailure, type Layer } from './call.ts'
import type { OutboundChannels } from './channels.ts'
import type { OutboundOptions } from './options.ts'
import type { RetryBudget } from './retry-budget.ts'

/**
 * Retry: pricing is a pure read, so a failed or expired attempt may be followed by another one, after a jittered
 * back-off, if the budget of extra attempts has a token. The delays are cockatiel's generator (its base is 2); the
 * sleep is ours, since cockatiel's cannot be aborted and would outlive the request.
 */
export function retry(
  options: OutboundOptions,
  extras: RetryBudget,
  channels: OutboundChannels,
  clock: Clock,
): Layer {
  const backoff = {
    initialDelay: options.retryDelayMs,
    maxDelay: options.retryMaxDelayMs,
  } as IExponentialBackoffOptions<number>
  return next => async call => {
    for (let retries = 0; ; retries++) {
      try {
        return await next(call)
      } catch (error) {
        if (retries >= options.retryMaxAttempts || !isFailure(error, 'failed', 'timeout')) throw error
        const [delayMs] = fullJitterGenerator(retries, backoff)
        const leftMs = call.endsAtMs - clock.nowMs() - delayMs
        if (leftMs < MIN_ATTEMPT_MS || !extras.withdraw()) throw error
        await sleep(clock, delayMs, call.signal)
        channels.retry.publish({})
      }
    }
  }
}

/** The longest that all back-offs of one call can take together, in ms. */
export function longestBackoffMs(options: {
  retryMaxAttempts: number
  retryDelayMs: number
  retryMaxDelayMs: number
}): number {
  let totalMs = 0
  for (let retries = 0; retries < options.retryMaxAttempts; retries++) {
    totalMs += Math.min(options.retryMaxDelayMs, options.retryDelayMs * 2 ** retries)
  }
  return totalMs
}
