import { inspect } from 'node:util'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from 'vitest'
import { Channel } from '../../src/runtime/index.ts'

let warnings: MockInstance<typeof process.emitWarning>

beforeEach(() => {
  warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
})

afterEach(() => {
  vi.restoreAllMocks()
})

test('every listener gets every message in the order of subscription, until it leaves', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('subscribe' as const) }),
    fc.record({ do: fc.constant('unsubscribe' as const), which: fc.nat({ max: 20 }) }),
    fc.record({ do: fc.constant('publish' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step), steps => {
      const channel = new Channel<number>()
      const got: string[] = []
      const expected: string[] = []
      const subscriptions: { id: number; active: boolean; leave: () => void }[] = []
      for (const [message, step] of steps.entries()) {
        if (step.do === 'subscribe') {
          const id = subscriptions.length
          subscriptions.push({ id, active: true, leave: channel.subscribe(m => got.push(`${id}:${m}`)) })
        } else if (step.do === 'unsubscribe') {
          const subscription = subscriptions[step.which]
          subscription?.leave()
          if (subscription) subscription.active = false
        } else {
          for (const { id, active } of subscriptions) if (active) expected.push(`${id}:${message}`)
          channel.publish(message)
        }
      }
      expect(got).toEqual(expected)
    }),
  )
})

test.each([
  ['an error', new Error('broken listener')],
  ['a string', 'broken'],
  ['nothing', undefined],
  ['a symbol', Symbol('broken')],
  ['an object', { broken: true }],
  ['an object without a prototype', Object.create(null)],
])('a listener that throws %s harms neither the publisher nor the others, and is reported', (_, thrown) => {
  const channel = new Channel<string>()
  const got: string[] = []
  channel.subscribe(message => got.push(`first ${message}`))
  channel.subscribe(() => {
    throw thrown
  })
  channel.subscribe(message => got.push(`last ${message}`))
  channel.publish('a')
  channel.publish('b')
  expect(got).toEqual(['first a', 'last a', 'first b', 'last b'])
  expect(warnings).toHaveBeenCalledTimes(2)
})

// The report asks the thrown object how it wants to be shown, and that answer escapes into the publisher.
test('a listener that throws what cannot be shown harms nobody', () => {
  const channel = new Channel<string>()
  channel.subscribe(() => {
    throw {
      [inspect.custom]() {
        throw new Error('cannot be shown')
      },
    }
  })
  channel.publish('a')
})

test('a listener that is subscribed twice hears everything twice, and each of its leaves is its own', () => {
  const channel = new Channel<string>()
  const got: string[] = []
  const listener = (message: string) => got.push(message)
  const leaveFirst = channel.subscribe(listener)
  const leaveSecond = channel.subscribe(listener)
  channel.publish('a')
  leaveFirst()
  leaveFirst()
  channel.publish('b')
  leaveSecond()
  channel.publish('c')
  expect(got).toEqual(['a', 'a', 'b'])
})

test('a listener that leaves during a publish takes no message from the others', () => {
  const channel = new Channel<string>()
  const got: string[] = []
  const leave = channel.subscribe(message => {
    got.push(`leaver ${message}`)
    leave()
  })
  channel.subscribe(message => got.push(`stayer ${message}`))
  channel.publish('a')
  channel.publish('b')
  expect(got).toEqual(['leaver a', 'stayer a', 'stayer b'])
})

test('a listener that arrives during a publish begins with the next message', () => {
  const channel = new Channel<string>()
  const got: string[] = []
  channel.subscribe(message => {
    if (message === 'a') channel.subscribe(later => got.push(later))
  })
  channel.publish('a')
  channel.publish('b')
  expect(got).toEqual(['b'])
})

test('publishing within a listener reaches everyone once', () => {
  const channel = new Channel<number>()
  const got: number[] = []
  channel.subscribe(message => {
    if (message > 0) channel.publish(message - 1)
  })
  channel.subscribe(message => got.push(message))
  channel.publish(3)
  expect(got).toEqual([0, 1, 2, 3])
})
