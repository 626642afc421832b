import type { z } from 'zod'
import { group, oneOf } from '../runtime/index.ts'

export const logOptions = group({
  level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    is: 'The least severe level that is written.',
    default: 'info',
    trade: 'Lower levels cost time and disk.',
  }),
  requests: oneOf(['all', 'errors', 'none'], {
    is: 'Which requests get a line of their own: all, those answered with 5xx, or none.',
    default: 'errors',
    trade: '`all` costs a measurable share of throughput; metrics count every request either way.',
  }),
})

export type LogOptions = z.output<typeof logOptions>
