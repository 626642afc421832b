import { flag, group, wholeNumber } from '../runtime/index.ts'

export const lifecycleOptions = group({
  warmUp: flag({
    is: 'Whether the instance plays requests of its own through the whole stack before it turns ready; they leave nothing.',
    default: true,
    trade:
      'On, an instance that starts while pricing fails stays away until that is well, reads and replays included. Off, it is ready sooner, its first hundred requests are slow, and trouble with pricing or the store shows only then.',
  }),
  unreadyDelayMs: wholeNumber({
    is: 'How long requests are still served after readiness has turned 503, before the listener closes.',
    unit: 'ms',
    default: 1_000,
    min: 0,
    max: 60_000,
    trade:
      'Must outlast the time in which the balancer notices, or clients that reuse connections meet a closed one; longer makes every restart longer, and with the drain it must fit into `shutdownTimeoutSeconds`.',
  }),
  drainSeconds: wholeNumber({
    is: 'How long requests in progress may take to finish once the listener has closed.',
    unit: 's',
    default: 20,
    min: 1,
    max: 600,
    trade: 'Longer drops fewer requests; the supervisor must wait longer still before it kills.',
  }),
  shutdownTimeoutSeconds: wholeNumber({
    is: 'How long the whole shutdown may take before the process gives up and exits with 1.',
    unit: 's',
    default: 25,
    min: 1,
    max: 900,
    trade: 'Keep it below the grace of the supervisor (Kubernetes: 30 s).',
  }),
})
