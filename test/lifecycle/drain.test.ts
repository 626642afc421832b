import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Drainable, drain } from '../../src/lifecycle/index.ts'
import { Channel } from '../../src/runtime/index.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'

const OPTIONS = { unreadyDelayMs: 1_000, drainSeconds: 20 }

/** A listener with requests in progress, and perhaps sockets that never say a word. */
class FakeListener implements Drainable {
  readonly events: string[] = []
  readonly #clock: VirtualClock
  readonly #startMs: number
  readonly #ended = new Channel<undefined>()
  listeners = 0
  requests: number

  constructor(clock: VirtualClock, requests: number) {
    this.#clock = clock
    this.#startMs = clock.nowMs()
    this.requests = requests
  }

  stopListening(): void {
    this.events.push(`stopped listening at ${this.#passedMs()}`)
  }

  cutConnections(): void {
    this.events.push(`cut at ${this.#passedMs()}`)
  }

  inFlight(): number {
    return this.requests
  }

  onEnded(listener: () => void): () => void {
    this.listeners++
    const unsubscribe = this.#ended.subscribe(listener)
    return () => {
      this.listeners--
      unsubscribe()
    }
  }

  end(): void {
    this.requests--
    this.#ended.publish(undefined)
  }

  #passedMs(): number {
    return this.#clock.nowMs() - this.#startMs
  }
}

function draining(requests: number, options = OPTIONS) {
  const clock = new VirtualClock()
  const target = new FakeListener(clock, requests)
  return { clock, target, dropped: drain(target, options, clock) }
}

describe('a drain', () => {
  test('serves on for unreadyDelayMs, then closes, and is over at once when nothing is in progress', async () => {
    const { clock, target, dropped } = draining(0)
    await clock.advanceAsync(999)
    expect(target.events).toEqual([])
    await clock.advanceAsync(1)
    // Sockets that stay silent are cut, not waited for.
    expect(target.events).toEqual(['stopped listening at 1000', 'cut at 1000'])
    expect(await dropped).toBe(0)
    expect(clock.pendingTimers).toBe(0)
  })

  test('reads what has arrived before it closes: that is in progress, not idle', async () => {
    const { clock, target, dropped } = draining(0)
    clock.block(1_000)
    clock.turn()
    await promisesSettled()
    expect(target.events).toEqual([])
    clock.turn(() => {
      target.requests++
    })
    await promisesSettled()
    expect(target.events).toEqual(['stopped listening at 1000'])
    target.end()
    expect(await dropped).toBe(0)
  })

  test('waits for what is in progress, and cuts as soon as the last one ends', async () => {
    const { clock, target, dropped } = draining(2)
    await clock.advanceAsync(1_500)
    target.end()
    await clock.advanceAsync(500)
    expect(target.events).toEqual(['stopped listening at 1000'])
    target.end()
    await clock.advanceAsync(0)
    expect(target.events).toEqual(['stopped listening at 1000', 'cut at 2000'])
    expect(await dropped).toBe(0)
    expect({ timers: clock.pendingTimers, listeners: target.listeners }).toEqual({ timers: 0, listeners: 0 })
  })

  test('counts what it had to cut at the limit', async () => {
    const { clock, target, dropped } = draining(3)
    clock.setTimer(() => target.end(), 5_000)
    await clock.advanceAsync(20_999)
    expect(target.events).toEqual(['stopped listening at 1000'])
    await clock.advanceAsync(1)
    expect(target.events).toEqual(['stopped listening at 1000', 'cut at 21000'])
    expect(await dropped).toBe(2)
    expect({ timers: clock.pendingTimers, listeners: target.listeners }).toEqual({ timers: 0, listeners: 0 })
  })

  test('drops exactly those that outlast the limit, and takes no longer than it must', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 30_000 }), { maxLength: 8 }),
        fc.integer({ min: 1, max: 5_000 }),
        async (endsAtMs, unreadyDelayMs) => {
          const { clock, target, dropped } = draining(endsAtMs.length, { unreadyDelayMs, drainSeconds: 10 })
          for (const endAtMs of endsAtMs) clock.setTimer(() => target.end(), endAtMs)
          await clock.advanceAsync(40_000)
          const limitMs = unreadyDelayMs + 10_000
          const outlasting = endsAtMs.filter(endAtMs => endAtMs > limitMs).length
          // At the very limit both orders are right.
          const ties = endsAtMs.filter(endAtMs => endAtMs === limitMs).length
          expect(await dropped).toBeGreaterThanOrEqual(outlasting)
          expect(await dropped).toBeLessThanOrEqual(outlasting + ties)
          const cutAtMs = Math.min(limitMs, Math.max(unreadyDelayMs, ...endsAtMs))
          expect(target.events).toEqual([`stopped listening at ${unreadyDelayMs}`, `cut at ${cutAtMs}`])
          expect(target.listeners).toBe(0)
          expect(clock.pendingTimers).toBe(0)
        },
      ),
    )
  })
})
