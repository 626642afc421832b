import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OutboundFailure, type PriceList } from '../../src/outbound/call.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { ATTEMPT_MS, launch } from './launched-attempt.ts'

const LIST: PriceList = { prices: new Map(), unknown: [], bad: [], source: 'live' }

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

  test('that succeeds after another has won is late, and brings no price', async () => {
    const { exchange, results, start } = launch({
      leftMs: 100,
      endedBy: 'limit',
      obedient: true,
      claim: () => false,
    })
    exchange.resolve(LIST)
    expect(await start()).toBeInstanceOf(OutboundFailure)
    expect(results).toEqual(['late'])
  })

  test('goes on for as long as its call does, when the end of that moves away', async () => {
    const { clock, call, exchange, results, start } = launch({ leftMs: 10, endedBy: 'lease', obedient: true })
    const outcome = start()
    await clock.advanceAsync(5)
    call.endsAtMs += 20
    await clock.advanceAsync(24)
    expect(results).toEqual([])
    exchange.resolve(LIST)
    expect(await outcome).toBe('won')
  })

  test('never goes on past its own limit, however far the end of its call moves away', async () => {
    const { clock, call, results, start } = launch({ leftMs: 10, endedBy: 'lease', obedient: true })
    const outcome = start()
    call.endsAtMs += 1_000
    await clock.advanceAsync(ATTEMPT_MS)
    expect(results).toEqual(['expired'])
    expect(await outcome).toMatchObject({ kind: 'timeout' })
  })

  test('goes on for one who joins in the poll between its old end and its expiry', async () => {
    const clock = new PollingClock()
    const launched = launch({ leftMs: 10, endedBy: 'lease', obedient: true }, clock)
    const outcome = launched.start()
    clock.block(10)
    clock.turn()
    launched.call.endsAtMs += 100
    clock.pollIsOver()
    launched.exchange.resolve(LIST)
    expect(await outcome).toBe('won')
  })

  test('that wins in the poll between its old end and its expiry leaves no timer, though its end moved', async () => {
    const clock = new PollingClock()
    const launched = launch({ leftMs: 10, endedBy: 'lease', obedient: true }, clock)
    const outcome = launched.start()
    clock.block(10)
    clock.turn()
    launched.call.endsAtMs += 100
    launched.exchange.resolve(LIST)
    expect(await outcome).toBe('won')
    clock.pollIsOver()
    expect(clock.pendingTimers).toBe(0)
  })

  test('that is settled during the poll counts its own timer as nothing late', async () => {
    expect((await stalled(({ exchange }) => exchange.resolve(LIST))).late).toEqual([])
    expect((await stalled(({ request }) => request.abort(HANG_UP))).late).toEqual([])
  })

  test.each([
    ['lease', 'budget'],
    ['limit', 'timeout'],
  ] as const)(
    'that the %s leaves under 2 ms is shed, sends nothing and ends as %s',
    async (endedBy, kind) => {
      for (const leftMs of [1.875, 1, 0, -5]) {
        const { clock, results, sent, start, launched } = launch({ leftMs, endedBy, obedient: true })
        expect(await start()).toMatchObject({ kind })
        expect({ results, sent, timers: clock.pendingTimers }).toEqual({
          results: ['shed'],
          sent: [],
          timers: 0,
        })
        expect(launched()).toBe(1)
      }
    },
  )

  test('of a request that has ended is not launched', async () => {
    const { clock, request, results, sent, start, launched } = launch({
      leftMs: 100,
      endedBy: 'lease',
      obedient: true,
    })
    request.abort(HANG_UP)
    expect(await start()).toBe(HANG_UP)
    expect(launched()).toBe(0)
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
