import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { attempt } from '../../src/outbound/attempt.ts'
import { OutboundFailure, type PriceCall, type PriceList } from '../../src/outbound/call.ts'
import { outboundChannels } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import type { Transport } from '../../src/outbound/transport.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'

const LIST: PriceList = { prices: new Map(), unknown: [] }
const ATTEMPT_MS = 40

type Step = (typeof steps extends fc.Arbitrary<readonly (infer T)[]> ? T : never) & { calm: boolean }
const steps = fc.array(
  fc.record({
    do: fc.constantFrom('answer' as const, 'error' as const, 'abort' as const, 'advance' as const),
    ms: fc.nat({ max: 60 }),
    // Whether promises may go on before the next step; without, two ends fall into one turn.
    calm: fc.boolean(),
  }),
  { maxLength: 8 },
)

/** One attempt over a transport that answers when told, and listens to its signal only if it is `obedient`. */
function launch(
  options: { leftMs: number; endedBy: PriceCall['endedBy']; obedient: boolean },
  clock = new VirtualClock(),
) {
  const channels = outboundChannels()
  const results: string[] = []
  const late: string[] = []
  channels.attempt.subscribe(({ result }) => results.push(result))
  channels.late.subscribe(({ kind }) => late.push(kind))
  const sent: { id: string; traceparent: string; leftMs: number; signal: AbortSignal }[] = []
  const exchange = Promise.withResolvers<PriceList>()
  const transport = {
    send: (call: PriceCall, about: { id: string; traceparent: string; leftMs: number }) => {
      sent.push({ ...about, signal: call.signal })
      if (options.obedient) call.signal.addEventListener('abort', () => exchange.reject(call.signal.reason))
      return exchange.promise
    },
  } as unknown as Transport
  const request = new AbortController()
  const call: PriceCall = {
    currency: 'USD',
    skus: ['SKU-1'],
    endsAtMs: clock.nowMs() + options.leftMs,
    endedBy: options.endedBy,
    signal: request.signal,
    traceId: 'a'.repeat(32),
  }
  const start = () =>
    attempt(
      transport,
      outboundOptions.parse({ attemptMs: ATTEMPT_MS }),
      channels,
      clock,
    )(call).then(
      () => 'won' as const,
      (error: unknown) => error,
    )
  return { clock, request, exchange, results, late, sent, start }
}

/** A clock whose poll lasts until `pollIsOver`, so that promises can go on in between. */
class PollingClock extends VirtualClock {
  #waiting: (() => void)[] = []

  override afterPoll(fire: () => void): void {
    this.#waiting.push(fire)
  }

  pollIsOver(): void {
    for (const fire of this.#waiting.splice(0)) fire()
  }
}

const HANG_UP = new Error('the client hung up')
const RESET = new Error('ECONNRESET')

describe('an attempt', () => {
  test('has one result, the first, whatever comes in whatever order, and leaves nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          leftMs: fc.integer({ min: 2, max: 100 }),
          endedBy: fc.constantFrom('lease' as const, 'limit' as const),
          obedient: fc.boolean(),
        }),
        steps,
        async (options, steps) => {
          const { clock, request, exchange, results, late, sent, start } = launch(options)
          const outcome = start()
          const leftBehind = outcome.then(() => ({
            timers: clock.pendingTimers,
            listeners: getEventListeners(request.signal, 'abort').length,
          }))
          const endsInMs = Math.min(options.leftMs, ATTEMPT_MS)
          const endKind = options.leftMs <= ATTEMPT_MS && options.endedBy === 'lease' ? 'budget' : 'timeout'
          let passedMs = 0
          let first: string | undefined
          let crowded = false
          const happened = (result: string) => {
            first ??= result
          }
          const take = async (step: Step) => {
            if (step.do === 'abort') {
              request.abort(HANG_UP)
              happened('cancelled')
            }
            if (step.do === 'answer') {
              exchange.resolve(LIST)
              happened('won')
            }
            if (step.do === 'error') {
              exchange.reject(RESET)
              happened('failed')
            }
            if (step.do === 'advance') {
              clock.advance(step.ms)
              passedMs += step.ms
              if (passedMs >= endsInMs) happened('expired')
            }
            if (step.calm) await promisesSettled()
            else crowded = true
          }
          for (const step of steps) await take(step)
          // Time ends what is still open; then even a deaf transport comes to its end.
          await take({ do: 'advance', ms: 100, calm: true })
          await take({ do: 'answer', ms: 0, calm: true })

          expect(results).toHaveLength(1)
          const [result] = results
          if (!crowded) expect(result).toBe(first)
          const settled = await outcome
          if (result === 'won') expect(settled).toBe('won')
          if (result === 'cancelled') expect(settled).toBe(HANG_UP)
          if (result === 'failed') expect(settled).toMatchObject({ kind: 'failed', cause: RESET })
          if (result === 'expired') expect(settled).toMatchObject({ kind: endKind })
          expect(sent).toHaveLength(1)
          expect(sent[0]?.leftMs).toBe(endsInMs)
          expect(sent[0]?.signal.aborted).toBe(result === 'cancelled' || result === 'expired')
          expect(late.every(kind => kind !== result)).toBe(true)
          expect(await leftBehind).toEqual({ timers: 0, listeners: 0 })
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('keeps what the transport says of itself', async () => {
    const { exchange, results, start } = launch({ leftMs: 100, endedBy: 'limit', obedient: true })
    const refused = new OutboundFailure('refused')
    exchange.reject(refused)
    expect(await start()).toBe(refused)
    expect(results).toEqual(['failed'])
  })

  test('an answer that comes after its moment is counted as late and changes nothing', async () => {
    const { clock, exchange, results, late, start } = launch({
      leftMs: 100,
      endedBy: 'limit',
      obedient: false,
    })
    const outcome = start()
    clock.advance(ATTEMPT_MS)
    exchange.resolve(LIST)
    expect(await outcome).toMatchObject({ kind: 'timeout' })
    expect(results).toEqual(['expired'])
    expect(late).toEqual(['won'])
  })

  /** The loop stalls past the moment of an attempt; when it goes on, `ready` is what the sockets have to say. */
  async function stalled(ready: (launched: ReturnType<typeof launch>) => void) {
    const clock = new PollingClock()
    const launched = launch({ leftMs: 100, endedBy: 'limit', obedient: true }, clock)
    const outcome = launched.start()
    clock.block(ATTEMPT_MS + 20)
    clock.turn()
    ready(launched)
    await promisesSettled()
    clock.pollIsOver()
    return { outcome: await outcome, results: launched.results, late: launched.late }
  }

  test('wins after a stall by an answer that was waiting, and expires only without one', async () => {
    const answered = await stalled(({ exchange }) => exchange.resolve(LIST))
    expect(answered).toMatchObject({ outcome: 'won', results: ['won'] })
    const silent = await stalled(() => {})
    expect(silent).toMatchObject({ outcome: { kind: 'timeout' }, results: ['expired'] })
  })

  // Fault: what runs after the poll settles again without asking whether the attempt is over by then, so that a
  // good answer is counted once more as a late "expired". Mend: stop there only while settlement.winner is undefined.
  test('that is settled during the poll counts its own timer as nothing late', async () => {
    expect((await stalled(({ exchange }) => exchange.resolve(LIST))).late).toEqual([])
    expect((await stalled(({ request }) => request.abort(HANG_UP))).late).toEqual([])
  })

  test.each([
    ['lease', 'budget'],
    ['limit', 'timeout'],
  ] as const)('that the %s leaves under 2 ms is not launched and ends as %s', async (endedBy, kind) => {
    for (const leftMs of [1.875, 1, 0, -5]) {
      const { clock, results, sent, start } = launch({ leftMs, endedBy, obedient: true })
      expect(await start()).toMatchObject({ kind })
      expect({ results, sent, timers: clock.pendingTimers }).toEqual({ results: [], sent: [], timers: 0 })
    }
  })

  test('of a request that has ended is not launched', async () => {
    const { clock, request, results, sent, start } = launch({ leftMs: 100, endedBy: 'lease', obedient: true })
    request.abort(HANG_UP)
    expect(await start()).toBe(HANG_UP)
    expect({ results, sent, timers: clock.pendingTimers }).toEqual({ results: [], sent: [], timers: 0 })
  })

  test('has an id of its own and a span of its own in the trace of the request', async () => {
    const attempts = Array.from({ length: 3 }, () =>
      launch({ leftMs: 100, endedBy: 'lease', obedient: true }),
    )
    const sent = attempts.flatMap(({ start, exchange, sent }) => {
      void start()
      exchange.resolve(LIST)
      return sent
    })
    expect(new Set(sent.map(({ id }) => id)).size).toBe(3)
    expect(new Set(sent.map(({ traceparent }) => traceparent)).size).toBe(3)
    for (const { traceparent } of sent) expect(traceparent).toMatch(/^00-a{32}-[0-9a-f]{16}-01$/)
  })
})
