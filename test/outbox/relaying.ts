import { outboxChannels, Relay, type Sink } from '../../src/outbox/index.ts'
import { outboxOptions } from '../../src/outbox/options.ts'
import type { OutboxEvent } from '../../src/store/index.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { FakeOutbox } from './fake-outbox.ts'

/** What a consumer does with an event: takes it, also without saying so, fails it, refuses it for good, or hangs. */
export type Fate = 'take' | 'lose' | 'fail' | 'refuse' | 'hang'

/** What reached the consumer. */
export interface Arrival {
  readonly event: OutboxEvent
  readonly atMs: number
  readonly fate: Fate
  aborted: boolean
}

export interface RelayingChoices {
  readonly options?: object
  /** What happens to the `times`th delivery of an event. */
  readonly fate?: (event: OutboxEvent, times: number) => Fate
  /** How long the consumer takes for it. */
  readonly latencyMs?: number
  readonly onTaken?: (event: OutboxEvent) => void
  readonly retryAfterMs?: number
  readonly random?: () => number
  readonly clock?: VirtualClock
  readonly outbox?: FakeOutbox
}

/** A relay under a virtual clock between a fake outbox and a consumer that does as it is told. */
export function relaying(choices: RelayingChoices = {}) {
  const { fate = () => 'take', latencyMs = 0, retryAfterMs, random = () => 0.5 } = choices
  const { clock = new VirtualClock(), outbox = new FakeOutbox() } = choices
  const channels = outboxChannels()
  const arrivals: Arrival[] = []
  const times = new Map<number, number>()
  const load = { now: 0, most: 0 }
  const busy = { now: false }

  const sink: Sink = {
    deliver: async (event, signal) => {
      load.most = Math.max(load.most, ++load.now)
      const time = (times.get(event.sequence) ?? 0) + 1
      times.set(event.sequence, time)
      const arrival: Arrival = { event, atMs: clock.nowMs(), fate: fate(event, time), aborted: false }
      arrivals.push(arrival)
      const outcome = Promise.withResolvers<void>()
      const stop = () => {
        arrival.aborted = true
        outcome.resolve()
      }
      signal.addEventListener('abort', stop, { once: true })
      const timer =
        arrival.fate !== 'hang' && latencyMs > 0 ? clock.setTimer(outcome.resolve, latencyMs) : undefined
      if (arrival.fate !== 'hang' && latencyMs === 0) outcome.resolve()
      await outcome.promise
      if (timer) clock.clearTimer(timer)
      signal.removeEventListener('abort', stop)
      load.now--
      if (arrival.aborted) return { kind: 'failed', reason: 'aborted' }
      if (arrival.fate === 'take' || arrival.fate === 'lose') choices.onTaken?.(event)
      if (arrival.fate === 'take') return { kind: 'delivered' }
      if (arrival.fate === 'refuse') return { kind: 'refused', reason: 'refused' }
      return { kind: 'failed', reason: 'failed', ...(retryAfterMs !== undefined && { retryAfterMs }) }
    },
    close: async () => {},
  }
  const options = outboxOptions.parse(choices.options ?? {})
  const relay = new Relay({ outbox, sink, options, channels, clock, isBusy: () => busy.now, random })

  return {
    clock,
    outbox,
    channels,
    relay,
    options,
    arrivals,
    load,
    busy,
    /** Sequences in the order in which they arrived. */
    arrived: () => arrivals.map(({ event }) => event.sequence),
    arrivalsOf: (event: OutboxEvent) => arrivals.filter(arrival => arrival.event.sequence === event.sequence),
    /** Begins with an outbox that is found empty, or empties what is due. */
    begin: async () => {
      relay.start()
      await promisesSettled()
    },
    /** `count` events, each of an order of its own. */
    addMany: (count: number, prefix = 'order') =>
      Array.from({ length: count }, (_, index) => outbox.add(`${prefix}-${index}`)),
    /** Closes, and says after how long it was closed; gives up after a minute. */
    closedAfterMs: async () => {
      const startMs = clock.nowMs()
      let atMs: number | undefined
      void relay.close().then(() => {
        atMs = clock.nowMs()
      })
      await clock.advanceAsync(60_000)
      return atMs === undefined ? undefined : atMs - startMs
    },
  }
}
