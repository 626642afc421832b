import { group, wholeNumber } from '../runtime/index.ts'

export const idempotencyOptions = group({
  retentionHours: wholeNumber({
    is: 'How long a key keeps its answer. After that the same key makes another order.',
    unit: 'h',
    default: 24,
    min: 1,
    max: 8_760,
    trade: 'Higher lets callers retry later, and keeps a larger store.',
  }),
  sweepIntervalMs: wholeNumber({
    is: 'How often expired keys and delivered events are looked for.',
    unit: 'ms',
    default: 1_000,
    min: 10,
    max: 3_600_000,
    trade: 'Higher leaves more to delete at once.',
  }),
  sweepBatch: wholeNumber({
    is: 'Rows looked at in one step; while there may be more, the next step follows soon.',
    unit: 'rows',
    default: 200,
    min: 1,
    max: 2_000,
    trade: 'Higher deletes faster and makes the orders of the same group wait longer.',
  }),
})
