import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sink } from '../../src/outbox/index.ts'
import { someEvent } from '../outbox/consumer.ts'
import { never } from '../support/order-write.ts'

/** A sink and the place that it announces to; every test gets new ones. */
export interface SinkHarness {
  readonly sink: Sink
  /** Ids in the order in which they were announced; undefined when the sink announces to nobody. */
  announced(): readonly string[] | undefined
  dispose(): Promise<void>
}

/** What every sink promises as long as the consumer is well. */
export function sinkContract(name: string, makeHarness: () => SinkHarness | Promise<SinkHarness>): void {
  describe(`sink contract: ${name}`, () => {
    let harness: SinkHarness
    let sink: Sink

    beforeEach(async () => {
      harness = await makeHarness()
      sink = harness.sink
    })
    afterEach(() => harness.dispose())

    const expectAnnounced = (ids: readonly string[]) => {
      const announced = harness.announced()
      if (announced !== undefined) expect([...announced].sort()).toEqual([...ids].sort())
    }

    it('says that an event is delivered once it has announced it', async () => {
      expect(await sink.deliver(someEvent(), never())).toEqual({ kind: 'delivered' })
      expectAnnounced([someEvent().id])
    })

    it('announces an event again when asked again', async () => {
      for (let time = 0; time < 3; time++) await sink.deliver(someEvent({ attempts: time }), never())
      expectAnnounced(Array(3).fill(someEvent().id))
    })

    it('takes events of many orders at once', async () => {
      const events = Array.from({ length: 50 }, (_, index) =>
        someEvent({ sequence: index, id: `event-${index}`, subject: `order-${index}` }),
      )
      const deliveries = await Promise.all(events.map(event => sink.deliver(event, never())))
      expect(deliveries).toEqual(Array(50).fill({ kind: 'delivered' }))
      expectAnnounced(events.map(({ id }) => id))
    })

    it.each([
      ['the largest order', { json: JSON.stringify({ text: 'x'.repeat(65_536) }) }],
      ['text from all over the world', { json: '{"text":"東京 😀 \\u0000"}', tenant: 'größer' }],
      ['a moment before the epoch', { atMs: -1 }],
    ])('takes %s', async (_, choices) => {
      expect(await sink.deliver(someEvent(choices), never())).toEqual({ kind: 'delivered' })
    })

    it('leaves no listener on the signal', async () => {
      const { signal } = new AbortController()
      await sink.deliver(someEvent(), signal)
      expect(getEventListeners(signal, 'abort')).toEqual([])
    })

    it('ends with a verdict when the signal has aborted, before or meanwhile', async () => {
      expect((await sink.deliver(someEvent(), AbortSignal.abort())).kind).toBeTypeOf('string')
      const controller = new AbortController()
      const delivery = sink.deliver(someEvent(), controller.signal)
      controller.abort()
      expect((await delivery).kind).toBeTypeOf('string')
      expect(getEventListeners(controller.signal, 'abort')).toEqual([])
    })

    it('closes, twice too, and does not throw for what comes after', async () => {
      await sink.close()
      await sink.close()
      expect((await sink.deliver(someEvent(), never())).kind).toBeTypeOf('string')
    })
  })
}
