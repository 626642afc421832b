import { z } from 'zod'
import { fraction, group, wholeNumber } from '../runtime/index.ts'

function isBaseUrl(value: string): boolean {
  if (value === 'bundled') return true
  const url = URL.parse(value)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return false
  return !url.search && !url.hash && !url.username && !url.password
}

export const outboundOptions = group({
  baseUrl: z
    .string()
    .max(2048)
    .refine(isBaseUrl, 'must be "bundled" or an http(s) URL without credentials, query or fragment')
    .default('bundled')
    .meta({
      is: 'Where prices come from: a URL, or `bundled` for the service that comes along.',
      trade: 'The bundled service knows only `config/prices.json`.',
    }),
  leaseMs: wholeNumber({
    is: 'How long a request may be held by pricing, everything included.',
    unit: 'ms',
    default: 150,
    min: 5,
    max: 60_000,
    trade: 'Higher waits longer for prices and leaves less for the commit.',
  }),
  totalMs: wholeNumber({
    is: 'How long all attempts of one call may take together, back-off included.',
    unit: 'ms',
    default: 110,
    min: 5,
    max: 60_000,
    trade: 'Must leave room for every attempt and the longest back-off.',
  }),
  attemptMs: wholeNumber({
    is: 'How long one attempt may take.',
    unit: 'ms',
    default: 40,
    min: 1,
    max: 60_000,
    trade: 'Lower gives up sooner on slow answers and retries more.',
  }),
  retryMaxAttempts: wholeNumber({
    is: 'Further attempts after the first one.',
    unit: 'retries',
    default: 1,
    min: 0,
    max: 5,
    trade: 'Each one may add a whole call to a service that is already in trouble.',
  }),
  retryDelayMs: wholeNumber({
    is: 'Upper bound of the first back-off; doubled for each further one, jittered over its whole length.',
    unit: 'ms',
    default: 10,
    min: 0,
    max: 10_000,
    trade: 'Higher gives a failing service more air and the caller less time.',
  }),
  retryMaxDelayMs: wholeNumber({
    is: 'Upper bound of any back-off.',
    unit: 'ms',
    default: 20,
    min: 0,
    max: 10_000,
    trade: 'Matters only from the second retry on.',
  }),
  maxConcurrent: wholeNumber({
    is: 'Calls to pricing in progress at once, and connections to it; the next one fails at once.',
    unit: 'calls',
    default: 1000,
    min: 1,
    max: 10_000,
    trade: 'Lower shields pricing; too low refuses orders that it could have served.',
  }),
  breaker: group({
    samplingSeconds: wholeNumber({
      is: 'The window over which failures are counted.',
      unit: 's',
      default: 10,
      min: 1,
      max: 600,
      trade: 'Longer reacts more slowly and is not fooled by short bursts.',
    }),
    failureRatio: fraction({
      is: 'The share of failed calls in the window that opens the breaker.',
      unit: 'ratio',
      default: 0.5,
      min: 0.01,
      max: 0.99,
      trade: 'Lower opens sooner.',
    }),
    minimumRps: fraction({
      is: 'Calls per second below which the ratio says too little to open the breaker.',
      unit: 'calls/s',
      default: 2,
      min: 0.1,
      max: 100_000,
      trade: 'Higher keeps the breaker closed under light load.',
    }),
    halfOpenAfterMs: wholeNumber({
      is: 'How long the breaker stays open before it lets probes through.',
      unit: 'ms',
      default: 1000,
      min: 10,
      max: 600_000,
      trade: 'Lower finds recovery sooner and bothers a dead service more often.',
    }),
    halfOpenCalls: wholeNumber({
      is: 'Probes that decide whether the breaker closes again; everyone else fails fast meanwhile.',
      unit: 'calls',
      default: 3,
      min: 1,
      max: 1000,
      trade: 'Higher decides on better evidence and later.',
    }),
  }),
})

export type OutboundOptions = z.output<typeof outboundOptions>
