import { z } from 'zod'
import { flag, group, oneOf, text, wholeNumber } from '../runtime/index.ts'
import { LONGEST_WAIT_MS } from '../store/index.ts'

function isWebhookUrl(value: string): boolean {
  if (value === '') return true
  const url = URL.parse(value)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return false
  return !url.hash && !url.username && !url.password
}

export const outboxOptions = group({
  sink: oneOf(['log', 'webhook', 'none'], {
    is: 'Where events go: lines of the log, a webhook, or nowhere.',
    default: 'log',
    trade: 'Only a webhook tells anybody else.',
  }),
  batchSize: wholeNumber({
    is: 'Events in one claim.',
    unit: 'events',
    default: 200,
    min: 1,
    max: 2_000,
    trade: 'Higher costs fewer transactions, more memory, and more redeliveries after a crash.',
  }),
  pollIntervalMs: wholeNumber({
    is: 'How often the outbox is looked at when no commit has woken the relay; also the pace while orders come in faster than `capacity.targetRps` and keep the event loop busy for more than 55 % of its time: one claim in four times this, half a second at most, and no longer once events have waited for 10 s.',
    unit: 'ms',
    default: 100,
    min: 5,
    max: 60_000,
    trade: 'Lower finds sooner what another process wrote, and announces more while orders come in fast.',
  }),
  leaseMs: wholeNumber({
    is: 'How long a claim lasts. After a crash its events wait as long.',
    unit: 'ms',
    default: 30_000,
    min: 100,
    max: LONGEST_WAIT_MS,
    trade: 'Lower goes on sooner after a crash; too low and slow consumers get events twice.',
  }),
  maxAttempts: wholeNumber({
    is: 'Deliveries of one event before it is parked.',
    unit: 'attempts',
    default: 12,
    min: 1,
    max: 1_000,
    trade:
      'Higher rides out longer outages by itself; with the delays below, 12 last about four minutes, and as much longer as the deliveries take.',
  }),
  retryDelayMs: wholeNumber({
    is: 'Delay before the second delivery of an event; doubled for each further one, jittered over its upper half.',
    unit: 'ms',
    default: 500,
    min: 1,
    max: LONGEST_WAIT_MS,
    trade: 'Lower tries again sooner and bothers a consumer in trouble more.',
  }),
  retryMaxDelayMs: wholeNumber({
    is: 'Longest delay of our own; a consumer may ask for up to an hour.',
    unit: 'ms',
    default: 60_000,
    min: 1,
    max: LONGEST_WAIT_MS,
    trade: 'Lower finds a consumer that is back sooner.',
  }),
  maxConcurrent: wholeNumber({
    is: 'Deliveries in progress at once, each of another order.',
    unit: 'deliveries',
    default: 64,
    min: 1,
    max: 1_000,
    trade: 'Higher is quicker to a consumer with some latency, and more load on it.',
  }),
  degradedAfterSeconds: wholeNumber({
    is: 'Age of the oldest waiting event from which readiness reports the outbox as degraded; it stays ready.',
    unit: 's',
    default: 60,
    min: 1,
    max: 604_800,
    trade: 'Lower tells sooner of a consumer that is away.',
  }),
  deliveredRetentionHours: wholeNumber({
    is: 'How long after its making a delivered event is kept.',
    unit: 'h',
    default: 24,
    min: 0,
    max: 8_760,
    trade: 'Higher keeps more to look at, and a larger store.',
  }),
  webhook: group({
    url: z
      .string()
      .max(2048)
      .refine(isWebhookUrl, 'must be an http(s) URL without credentials or fragment')
      .default('')
      .meta({
        is: 'Where events are posted.',
        // Whoever knows the path of some consumers can post there.
        secret: true,
        trade: 'Needed by the sink `webhook`.',
      }),
    secret: text({
      is: 'Signs deliveries as Standard Webhooks has it: `whsec_` and 24 to 64 bytes in base64.',
      default: '',
      // 24 to 64 bytes.
      pattern:
        /^(whsec_(?:[A-Za-z0-9+/]{4}){8,20}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?|[A-Za-z0-9+/]{6}(?:==)?)?)?$/,
      maxLength: 100,
      secret: true,
      trade: 'Needed by the sink `webhook`; whoever knows it can forge deliveries.',
    }),
    timeoutMs: wholeNumber({
      is: 'How long one delivery may take, until the last byte of its answer.',
      unit: 'ms',
      default: 5_000,
      min: 10,
      max: 600_000,
      trade: 'Higher waits for slow consumers, which hold up the orders behind them.',
    }),
    allowPrivateNetworks: flag({
      is: 'Whether the target may lie in a private, loopback or link-local network.',
      default: false,
      trade: 'On, whoever sets the URL or its DNS reaches what only this machine can.',
    }),
  }),
})

export type OutboxOptions = z.output<typeof outboxOptions>
