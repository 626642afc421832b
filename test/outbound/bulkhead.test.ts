import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bulkhead } from '../../src/outbound/bulkhead.ts'
import { OutboundFailure, type PriceCall, type PriceList } from '../../src/outbound/call.ts'

const CALL = {} as PriceCall
const LIST: PriceList = { prices: new Map(), unknown: [], bad: [], source: 'live' }

test('the bulkhead lets maxConcurrent calls in, sheds the next at once, and gets each place back once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.oneof(fc.constant('call' as const), fc.record({ which: fc.nat(), good: fc.boolean() })), {
        maxLength: 50,
      }),
      async (maxConcurrent, steps) => {
        const running: { exchange: PromiseWithResolvers<PriceList>; outcome: Promise<unknown> }[] = []
        const layer = bulkhead(maxConcurrent)
        for (const step of steps) {
          if (step === 'call') {
            const exchange = Promise.withResolvers<PriceList>()
            let launched = false
            const outcome = layer(() => {
              launched = true
              return exchange.promise
            })(CALL).catch((error: unknown) => error)
            expect(launched).toBe(running.length < maxConcurrent)
            if (launched) running.push({ exchange, outcome })
            else expect(await outcome).toMatchObject({ name: 'OutboundFailure', kind: 'shed' })
          } else if (running.length > 0) {
            const [ended] = running.splice(step.which % running.length, 1)
            const error = new OutboundFailure('failed')
            if (step.good) ended?.exchange.resolve(LIST)
            else ended?.exchange.reject(error)
            expect(await ended?.outcome).toBe(step.good ? LIST : error)
          }
        }
      },
    ),
  )
})
