import type { OutboxEvent, SettleException } from '../store/index.ts'
import { retryDelayMs } from './backoff.ts'
import type { OutboxOptions } from './options.ts'
import type { Delivery } from './sinks/sink.ts'

/** What becomes of an event that was not delivered: it is due again later, or parked. */
export function afterFailure(
  event: OutboxEvent,
  delivery: Failure,
  options: OutboxOptions,
  wallMs: number,
  random: () => number,
): Fate {
  const attempts = event.attempts + 1
  const { reason } = delivery
  if (delivery.kind === 'refused' || attempts >= options.maxAttempts) {
    return { attempts, dueAtMs: undefined, reason }
  }
  const delayMs = retryDelayMs(options, attempts, delivery.retryAfterMs ?? 0, random)
  return { attempts, dueAtMs: wallMs + delayMs, reason }
}

/** What becomes of the events of its order behind it. */
export function behindFailure(event: OutboxEvent, { dueAtMs }: Fate): Fate {
  const reason =
    dueAtMs === undefined
      ? 'an earlier event of its order is parked'
      : 'an earlier event of its order is due first'
  return { attempts: event.attempts, dueAtMs, reason }
}

export type Failure = Exclude<Delivery, { kind: 'delivered' }>

export type Fate = Omit<SettleException, 'sequence'>
