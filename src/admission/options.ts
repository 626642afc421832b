import { group, wholeNumber } from '../runtime/index.ts'

export const capacityOptions = group({
  targetRps: wholeNumber({
    is: 'The load that one instance is sized for. Checked against the other numbers; limits no request itself. Above it, orders go before their events where both need the machine.',
    unit: 'requests/s',
    default: 1000,
    min: 1,
    max: 200_000,
    trade: 'Higher asks for more permits and more outbox capacity before the instance agrees to start.',
  }),
  saturatedLatencyMs: wholeNumber({
    is: 'How long a request takes on a saturated instance: W in L = λW, from a load test.',
    unit: 'ms',
    default: 45,
    min: 1,
    max: 60_000,
    trade: 'Higher asks for more permits.',
  }),
  queueSlots: wholeNumber({
    is: 'Permits beyond L that absorb jitter in arrivals. They are permits, not a queue.',
    unit: 'permits',
    default: 15,
    min: 0,
    max: 10_000,
    trade: 'Higher refuses fewer bursts and lets each one wait longer.',
  }),
  maxConcurrent: wholeNumber({
    is: 'Requests in progress at once; the next one is answered 429 without waiting.',
    unit: 'permits',
    default: 60,
    min: 1,
    max: 10_000,
    trade: 'Higher accepts more at once and makes everyone slower; lower refuses sooner.',
  }),
})
