import { z } from 'zod'
import { flag, fraction, group, wholeNumber } from '../runtime/index.ts'

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
  retryBudgetRatio: fraction({
    is: 'Extra attempts, retries and hedges together, per call.',
    unit: 'ratio',
    default: 0.1,
    min: 0,
    max: 1,
    trade: 'Higher rescues more calls and adds as much to the load of a service in trouble.',
  }),
  fallbackMaxAgeMs: wholeNumber({
    is: 'How old a remembered price may be to serve while pricing brings none; 0 never serves one.',
    unit: 'ms',
    default: 300_000,
    min: 0,
    max: 86_400_000,
    trade: 'Higher takes orders through longer outages, at prices that may have changed.',
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
  hedge: group({
    enabled: flag({
      is: 'Whether a slow attempt gets a second one beside it.',
      default: true,
      trade: 'Off, the slowest answers stay as slow as they are.',
    }),
    percentile: fraction({
      is: 'The share of recent answers that were quicker than the delay before a second attempt.',
      unit: 'ratio',
      default: 0.95,
      min: 0.5,
      max: 0.999,
      trade: 'Lower hedges sooner and more often.',
    }),
    minDelayMs: wholeNumber({
      is: 'The shortest delay before a second attempt.',
      unit: 'ms',
      default: 5,
      min: 1,
      max: 10_000,
      trade: 'Lower hedges against delays that are only noise.',
    }),
    maxRatio: fraction({
      is: 'Second attempts per call.',
      unit: 'ratio',
      default: 0.05,
      min: 0,
      max: 1,
      trade: 'Higher cuts more of the tail and adds as much load.',
    }),
  }),
  batch: group({
    windowMs: wholeNumber({
      is: 'How long the first SKU of a request to pricing waits for others.',
      unit: 'ms',
      default: 3,
      min: 0,
      max: 1_000,
      trade: 'Longer asks pricing less often and makes every price that much later.',
    }),
    maxSize: wholeNumber({
      is: 'SKUs in one request to pricing.',
      unit: 'SKUs',
      default: 50,
      min: 1,
      max: 1_000,
      trade: 'Must not exceed what pricing takes.',
    }),
  }),
})

export type OutboundOptions = z.output<typeof outboundOptions>
