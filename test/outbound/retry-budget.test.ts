import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RetryBudget } from '../../src/outbound/retry-budget.ts'

describe('the retry budget', () => {
  test('never lets more through than its capacity and ratio of the calls, refunds taken off', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.constantFrom('deposit', 'deposit', 'deposit', 'withdraw', 'withdraw', 'refund'), {
          maxLength: 400,
        }),
        (ratio, capacity, steps) => {
          const budget = new RetryBudget(ratio, capacity)
          let calls = 0
          let extras = 0
          let tokens = ratio === 0 ? 0 : capacity
          for (const step of steps) {
            if (step === 'deposit') {
              budget.deposit()
              calls++
              tokens = Math.min(capacity, tokens + ratio)
            } else if (step === 'withdraw') {
              const granted = budget.withdraw()
              // Told apart only where a token is clearly there or clearly not.
              if (Math.abs(tokens - 1) > 1e-6) expect(granted).toBe(tokens >= 1)
              if (granted) {
                extras++
                tokens -= 1
              }
            } else if (extras > 0) {
              budget.refund()
              extras--
              tokens = Math.min(capacity, tokens + 1)
            }
            expect(extras).toBeLessThanOrEqual((ratio === 0 ? 0 : capacity) + ratio * calls + 1e-6)
          }
        },
      ),
    )
  })

  test('starts with ten, and has no more after a quiet hour', () => {
    const budget = new RetryBudget(0.1)
    const drain = () => {
      let granted = 0
      while (budget.withdraw()) granted++
      return granted
    }
    expect(drain()).toBe(10)
    for (let calls = 0; calls < 100_000; calls++) budget.deposit()
    expect(drain()).toBe(10)
    // Ten tenths are one.
    for (let calls = 0; calls < 10; calls++) budget.deposit()
    expect(drain()).toBe(1)
    budget.refund()
    expect(drain()).toBe(1)
  })

  test('of ratio 0 never lets anything through', () => {
    const budget = new RetryBudget(0)
    for (let calls = 0; calls < 1_000; calls++) budget.deposit()
    expect(budget.withdraw()).toBe(false)
  })
})
