import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BoundedQueue } from '../../src/runtime/index.ts'

const step = fc.oneof(
  fc.record({ do: fc.constant('offer' as const), item: fc.integer({ min: 0, max: 9 }) }),
  fc.record({ do: fc.constant('take' as const), count: fc.integer({ min: 0, max: 5 }) }),
  fc.record({ do: fc.constant('remove' as const), item: fc.integer({ min: 0, max: 9 }) }),
)

test('the queue keeps order, never holds more than its capacity, and loses or doubles nothing', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 6 }), fc.array(step), (capacity, steps) => {
      const queue = new BoundedQueue<number>(capacity)
      let model: number[] = []
      for (const step of steps) {
        if (step.do === 'offer') {
          const taken = model.length < capacity
          if (taken) model.push(step.item)
          expect(queue.offer(step.item)).toBe(taken)
        } else if (step.do === 'take') {
          expect(queue.take(step.count)).toEqual(model.slice(0, step.count))
          model = model.slice(step.count)
        } else {
          const index = model.indexOf(step.item)
          expect(queue.remove(step.item)).toBe(index >= 0)
          model = model.filter((_, at) => at !== index)
        }
        expect(queue.size).toBe(model.length)
        expect(queue.size).toBeLessThanOrEqual(capacity)
      }
      expect(queue.take(Number.POSITIVE_INFINITY)).toEqual(model)
      expect(queue.size).toBe(0)
    }),
  )
})
