import { group, wholeNumber } from '../runtime/index.ts'

export const deadlineOptions = group({
  requestBudgetMs: wholeNumber({
    is: 'How long a request may take, from its arrival to its answer. `Request-Budget-Ms` may only shorten it.',
    unit: 'ms',
    default: 200,
    min: 10,
    max: 60_000,
    trade: 'Higher waits longer for slow dependencies and holds each permit longer.',
  }),
  settleGraceMs: wholeNumber({
    is: 'How long after the budget a write that the store has already claimed may still bring its verdict.',
    unit: 'ms',
    default: 25,
    min: 0,
    max: 5_000,
    trade: 'Higher turns more `"committed":"unknown"` into facts and answers those requests later.',
  }),
  commitReserveMs: wholeNumber({
    is: 'What must be left of the budget to begin a commit; outbound calls are cut so that it remains.',
    unit: 'ms',
    default: 20,
    min: 1,
    max: 10_000,
    trade: 'Higher refuses earlier instead of starting commits that cannot finish.',
  }),
})
