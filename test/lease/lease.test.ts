import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Lease, LeaseEnd, type LeaseState, type Stage } from '../../src/lease/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

// All times are eighths of a millisecond: exact in binary, so that bounds can be compared without a tolerance.
const eighthsMs = (min: number, max: number) =>
  fc.integer({ min: min * 8, max: max * 8 }).map(eighths => eighths / 8)
const stages = fc.constantFrom<Stage>('admission', 'body', 'lookup', 'pricing', 'commit', 'read')

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const step = fc.oneof(
  fc.record({ do: fc.constant('advance' as const), ms: eighthsMs(0, 40) }),
  fc.record({ do: fc.constant('block' as const), ms: eighthsMs(0, 40) }),
  fc.record({ do: fc.constant('enter' as const), stage: stages, floorMs: eighthsMs(0, 30) }),
  fc.record({ do: fc.constant('abandon' as const) }),
  fc.record({ do: fc.constant('close' as const) }),
  fc.record({ do: fc.constant('signal' as const) }),
)

/** What `act` throws, or undefined. */
function thrownBy(act: () => void): unknown {
  try {
    act()
    return undefined
  } catch (error) {
    return error
  }
}

/** A lease beside a model that knows only its promises; `take` plays a step and checks them all. */
class Modelled {
  readonly clock: VirtualClock
  readonly lease: Lease
  readonly deadlineMs: number
  readonly armed: boolean
  readonly ends: { end: LeaseEnd; atMs: number }[] = []
  readonly effects: string[] = []
  state: LeaseState = 'open'
  stage: Stage = 'admission'
  signal: AbortSignal | undefined

  constructor(clock: VirtualClock, budgetMs: number, chargedMs: number) {
    this.clock = clock
    this.deadlineMs = clock.nowMs() + budgetMs - chargedMs
    this.armed = chargedMs < budgetMs
    this.lease = new Lease(clock, budgetMs, chargedMs, end => {
      this.ends.push({ end, atMs: clock.nowMs() })
      this.effects.push('onEnd')
    })
  }

  take(step: Step): void {
    const wasOpen = this.state === 'open'
    switch (step.do) {
      case 'advance':
        this.clock.advance(step.ms)
        if (wasOpen && this.lease.state === 'expired') {
          this.state = 'expired'
          expect(this.ends[0]?.atMs).toBeGreaterThanOrEqual(this.deadlineMs)
        } else if (wasOpen && this.armed) {
          expect(this.clock.nowMs()).toBeLessThan(this.deadlineMs + 3)
        }
        break
      case 'block':
        this.clock.block(step.ms)
        break
      case 'enter': {
        const tooLate = this.deadlineMs - this.clock.nowMs() <= step.floorMs
        const thrown = thrownBy(() => this.lease.enter(step.stage, step.floorMs))
        if (wasOpen) this.stage = step.stage
        if (wasOpen && tooLate) this.state = 'expired'
        expect(thrown).toBe(this.lease.ended)
        break
      }
      case 'abandon':
        this.lease.abandon()
        if (wasOpen) this.state = 'abandoned'
        break
      case 'close':
        this.lease.close()
        if (wasOpen) this.state = 'closed'
        break
      case 'signal':
        this.signal ??= this.listenedSignal()
        break
    }
    this.check()
  }

  listenedSignal(): AbortSignal {
    const { signal } = this.lease
    signal.addEventListener('abort', () => this.effects.push('signal'), { once: true })
    return signal
  }

  check(): void {
    const { lease } = this
    const cancelled = this.state === 'expired' || this.state === 'abandoned'
    expect(lease.state).toBe(this.state)
    expect(lease.remainingMs()).toBe(this.deadlineMs - this.clock.nowMs())
    expect(this.clock.pendingTimers).toBe(this.state === 'open' && this.armed ? 1 : 0)
    expect(this.ends.map(({ end }) => end)).toEqual(cancelled ? [lease.ended] : [])
    if (cancelled) expect(lease.ended).toMatchObject({ cause: this.state, stage: this.stage })
    else expect(lease.ended).toBeUndefined()
    if (this.signal === undefined) return
    expect(lease.signal).toBe(this.signal)
    expect(this.signal.aborted).toBe(cancelled)
    if (cancelled) expect(this.signal.reason).toBe(lease.ended)
    // A signal made after the end was aborted before anyone could listen.
    if (this.effects.includes('signal')) expect(this.effects).toEqual(['onEnd', 'signal'])
  }
}

describe('a lease', () => {
  test('ends once and keeps every promise, whatever is done with it in whatever order', () => {
    fc.assert(
      fc.property(
        eighthsMs(1, 100),
        eighthsMs(0, 120),
        fc.array(fc.integer({ min: 0, max: 15 }), { minLength: 1 }),
        fc.array(step, { maxLength: 30 }),
        (budgetMs, chargedMs, early, steps) => {
          let draws = 0
          const earlyMs = () => (early[draws++ % early.length] ?? 0) / 8
          const modelled = new Modelled(new VirtualClock({ earlyMs }), budgetMs, chargedMs)
          modelled.check()
          for (const step of steps) modelled.take(step)
          // Time alone ends whatever is still open and armed.
          modelled.take({ do: 'advance', ms: 102 })
          if (modelled.armed) expect(modelled.lease.state).not.toBe('open')
          expect(modelled.clock.pendingTimers).toBe(0)
          // A signal first read after the end tells the same.
          modelled.take({ do: 'signal' })
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('that expires tells its stage, runs onEnd first, and aborts with that very end', () => {
    const clock = new VirtualClock()
    const effects: unknown[] = []
    const lease = new Lease(clock, 200, 0, end =>
      effects.push(['onEnd', end, lease.state, lease.ended === end]),
    )
    lease.signal.addEventListener('abort', () => effects.push(['signal', lease.signal.reason]))
    lease.enter('pricing')
    clock.advance(201)
    expect(effects).toEqual([])
    clock.advance(1)
    expect(effects).toEqual([
      ['onEnd', lease.ended, 'expired', true],
      ['signal', lease.ended],
    ])
    expect(lease.ended).toBeInstanceOf(LeaseEnd)
    expect(lease.ended).toMatchObject({ cause: 'expired', stage: 'pricing' })
  })

  test('ends at its first stage when the whole budget had been waited away unseen', () => {
    fc.assert(
      fc.property(eighthsMs(1, 100), eighthsMs(0, 50), stages, (budgetMs, beyondMs, stage) => {
        const clock = new VirtualClock()
        const ends: LeaseEnd[] = []
        const lease = new Lease(clock, budgetMs, budgetMs + beyondMs, end => ends.push(end))
        expect(clock.pendingTimers).toBe(0)
        expect(ends).toEqual([])
        expect(thrownBy(() => lease.enter(stage))).toBe(lease.ended)
        expect(ends).toEqual([lease.ended])
        expect(lease.ended).toMatchObject({ cause: 'expired', stage })
      }),
    )
  })

  test('does not begin a stage for which too little is left', () => {
    const clock = new VirtualClock()
    const lease = new Lease(clock, 200, 0, () => {})
    clock.advance(180)
    expect(thrownBy(() => lease.enter('pricing', 19.875))).toBeUndefined()
    expect(thrownBy(() => lease.enter('commit', 20))).toBe(lease.ended)
    expect(lease.ended).toMatchObject({ cause: 'expired', stage: 'commit' })
    expect(thrownBy(() => lease.enter('read'))).toBe(lease.ended)
    expect(lease.stage).toBe('commit')
  })

  test.each<[string, (lease: Lease, clock: VirtualClock) => void]>([
    ['its timer', (_, clock) => clock.advance(202)],
    ['a stage that cannot finish', lease => lease.enter('commit', 200)],
    ['a client that hangs up', lease => lease.abandon()],
  ])('still stops the work when its onEnd throws, ended by %s', (_, end) => {
    const clock = new VirtualClock()
    const broken = new Error('broken onEnd')
    const lease = new Lease(clock, 200, 0, () => {
      throw broken
    })
    const { signal } = lease
    expect(thrownBy(() => end(lease, clock))).toBe(broken)
    expect(lease.ended).toBeInstanceOf(LeaseEnd)
    expect(signal.reason).toBe(lease.ended)
    expect(clock.pendingTimers).toBe(0)
    expect(thrownBy(() => lease.enter('commit'))).toBe(lease.ended)
  })

  test('is not ended a second time by what its own onEnd does', () => {
    const clock = new VirtualClock()
    let ends = 0
    const lease = new Lease(clock, 10, 0, () => {
      ends++
      lease.abandon()
      lease.close()
      expect(thrownBy(() => lease.enter('commit'))).toBe(lease.ended)
    })
    clock.advance(20)
    expect(ends).toBe(1)
    expect(lease.state).toBe('expired')
    expect(lease.signal.reason).toBe(lease.ended)
  })
})
