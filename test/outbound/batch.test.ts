import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { batch } from '../../src/outbound/batch.ts'
import { OutboundFailure, type PriceCall, type PriceList } from '../../src/outbound/call.ts'
import { Channel } from '../../src/runtime/index.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'

const HUNG_UP = new Error('nobody waits')
const REFUSED = new OutboundFailure('refused')
const SKUS = ['A', 'B', 'C', 'D', 'E', 'F']
type Word = 'price' | 'unknown' | 'bad'

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      currency: fc.constantFrom('USD', 'EUR'),
      skus: fc.uniqueArray(fc.constantFrom(...SKUS), { minLength: 1, maxLength: 2 }),
      leftMs: fc.integer({ min: 10, max: 100 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave' as const), which: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      which: fc.nat(),
      words: fc.oneof(
        fc.array(fc.constantFrom<Word>('price', 'price', 'unknown', 'bad'), { minLength: 1 }),
        fc.constantFrom('failure' as const, 'refusal' as const),
      ),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

interface Member {
  readonly call: PriceCall
  readonly request: AbortController
  readonly outcome: Promise<unknown>
  batch: Batch
  expected?: unknown
}

interface Batch {
  readonly currency: string
  readonly dueMs: number
  readonly members: Set<Member>
  sent?: Sent
  /** How many it was sent for. */
  sentFor?: number
  over: boolean
}

interface Sent {
  readonly call: PriceCall
  readonly skus: readonly string[]
  readonly answer: PromiseWithResolvers<PriceList>
}

const skusOf = (members: Iterable<Member>) => [...new Set([...members].flatMap(({ call }) => call.skus))]

/** The batch beside a model that knows only its promises. */
class Modelled {
  readonly clock = new VirtualClock()
  readonly members: Member[] = []
  readonly batches: Batch[] = []
  readonly sizes: number[] = []
  readonly windowMs: number
  readonly maxSize: number
  readonly #fetch
  readonly #unclaimed: Sent[] = []

  constructor({ windowMs, maxSize }: { windowMs: number; maxSize: number }) {
    this.windowMs = windowMs
    this.maxSize = maxSize
    const sizes = new Channel<{ size: number }>()
    sizes.subscribe(({ size }) => this.sizes.push(size))
    this.#fetch = batch(
      { windowMs, maxSize },
      sizes,
      this.clock,
    )(call => {
      const answer = Promise.withResolvers<PriceList>()
      this.#unclaimed.push({ call, skus: [...call.skus], answer })
      return answer.promise
    })
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'call') this.#call(step)
    if (step.do === 'leave') this.#leave(step.which)
    if (step.do === 'answer') await this.#answer(step.which, step.words)
    if (step.do === 'advance') {
      await this.clock.advanceAsync(step.ms)
      for (const due of this.#gathering()) if (due.dueMs <= this.clock.nowMs()) this.#expectSent(due)
    }
    // What was sent is what the model sent, when it did, and nothing besides.
    expect(this.#unclaimed).toEqual([])
    await promisesSettled()
    for (const member of this.members) {
      expect(await Promise.race([member.outcome, Promise.resolve()])).toEqual(member.expected)
    }
    for (const { sent, members, over } of this.batches) {
      if (sent === undefined || over) continue
      expect(sent.call.signal.aborted).toBe(false)
      expect(sent.call.endsAtMs).toBe(Math.max(...[...members].map(({ call }) => call.endsAtMs)))
      // A retry asks for what is still waited for.
      expect([...sent.call.skus].sort()).toEqual(skusOf(members).sort())
    }
  }

  #gathering(): Batch[] {
    return this.batches.filter(({ sent, over }) => sent === undefined && !over)
  }

  #call({ currency, skus, leftMs }: Step & { do: 'call' }): void {
    const request = new AbortController()
    const endsAtMs = this.clock.nowMs() + leftMs
    const call: PriceCall = {
      currency,
      skus,
      endsAtMs,
      endedBy: 'lease',
      signal: request.signal,
      traceparent: '',
    }
    const outcome = this.#fetch(call).catch((error: unknown) => error)
    let into = this.#gathering().find(one => one.currency === currency)
    if (into && skusOf(into.members).length + skus.length > this.maxSize) {
      this.#expectSent(into)
      into = undefined
    }
    if (into === undefined) {
      const dueMs = this.clock.nowMs() + Math.max(1, this.windowMs)
      into = { currency, dueMs, members: new Set(), over: false }
      this.batches.push(into)
    }
    const member: Member = { call, request, outcome, batch: into }
    into.members.add(member)
    this.members.push(member)
    if (skusOf(into.members).length >= this.maxSize) this.#expectSent(into)
  }

  #expectSent(one: Batch): void {
    const sent = this.#unclaimed.shift()
    const asked = skusOf(one.members)
    expect(sent).toMatchObject({ call: { currency: one.currency } })
    expect([...(sent?.skus ?? [])].sort()).toEqual(asked.sort())
    expect(this.sizes.at(-1 - this.#unclaimed.length)).toBe(asked.length)
    expect(asked.length).toBeLessThanOrEqual(this.maxSize)
    if (sent === undefined) return
    one.sent = sent
    one.sentFor = one.members.size
  }

  #leave(which: number): void {
    const member = this.members[which % Math.max(1, this.members.length)]
    if (member === undefined || member.request.signal.aborted) return
    member.request.abort(HUNG_UP)
    if (member.expected !== undefined) return
    member.expected = HUNG_UP
    const left = member.batch
    left.members.delete(member)
    if (left.members.size > 0) return
    // Nobody is left: nothing is sent, or what was sent is aborted.
    left.over = true
    if (left.sent === undefined) return
    const { signal } = left.sent.call
    expect(signal.aborted).toBe(true)
    // What is inside does as the chain does: it fails with the reason of its signal.
    left.sent.answer.reject(signal.reason)
  }

  /** Each of several is asked for again, alone and at once; who was alone is refused. */
  async #refuse(one: Batch): Promise<void> {
    one.sent?.answer.reject(REFUSED)
    await promisesSettled()
    for (const member of one.members) {
      if (one.sentFor === 1) member.expected = REFUSED
      else {
        const { call } = member
        expect(this.#unclaimed[0]?.call).toBe(call)
        member.batch = { currency: call.currency, dueMs: 0, members: new Set([member]), over: false }
        this.batches.push(member.batch)
        this.#expectSent(member.batch)
      }
    }
  }

  async #answer(which: number, words: readonly Word[] | 'failure' | 'refusal'): Promise<void> {
    const open = this.batches.filter(({ sent, over }) => sent && !over)
    const one = open[which % Math.max(1, open.length)]
    if (one?.sent === undefined) return
    one.over = true
    if (words === 'refusal') return this.#refuse(one)
    const failure = new OutboundFailure('failed')
    if (words === 'failure') one.sent.answer.reject(failure)
    const asked = skusOf(one.members)
    const wordOf = (sku: string) => (words === 'failure' ? 'bad' : words[asked.indexOf(sku) % words.length])
    const list: PriceList = {
      prices: new Map(asked.filter(sku => wordOf(sku) === 'price').map(sku => [sku, which])),
      unknown: asked.filter(sku => wordOf(sku) === 'unknown'),
      bad: asked.filter(sku => wordOf(sku) === 'bad'),
      source: 'live',
    }
    one.sent.answer.resolve(list)
    for (const member of one.members) {
      const { skus } = member.call
      const prices = new Map(skus.filter(sku => wordOf(sku) === 'price').map(sku => [sku, which]))
      const unknown = skus.filter(sku => wordOf(sku) === 'unknown')
      member.expected = skus.some(sku => wordOf(sku) === 'bad')
        ? expect.objectContaining({ name: 'OutboundFailure', kind: 'failed' })
        : { prices, unknown, bad: [], source: 'live' }
    }
  }

  /** Answers all that is out, and leaves nothing behind. */
  async end(): Promise<void> {
    await this.take({ do: 'advance', ms: Math.max(1, this.windowMs) })
    for (let open = 0; open < this.batches.length; open++)
      await this.take({ do: 'answer', which: 0, words: ['price'] })
    for (const { expected } of this.members) expect(expected).toBeDefined()
    expect(this.clock.pendingTimers).toBe(0)
    const left = this.members.flatMap(({ request }) => getEventListeners(request.signal, 'abort'))
    expect(left).toEqual([])
  }
}

describe('the batch', () => {
  test('keeps its promises under every order of calls, answers, departures and time', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({ windowMs: fc.nat({ max: 5 }), maxSize: fc.integer({ min: 2, max: 4 }) }),
        fc.array(step, { maxLength: 40 }),
        async (options, steps) => {
          const modelled = new Modelled(options)
          for (const step of steps) await modelled.take(step)
          await modelled.end()
        },
      ),
      { numRuns: 500 },
    )
  })

  test('asks once for a SKU that several of its members want', async () => {
    const modelled = new Modelled({ windowMs: 3, maxSize: 50 })
    for (let calls = 0; calls < 5; calls++)
      await modelled.take({ do: 'call', currency: 'USD', skus: ['A'], leftMs: 50 })
    await modelled.end()
    expect(modelled.sizes).toEqual([1])
  })
})
