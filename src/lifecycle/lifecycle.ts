import type { Channel, Clock } from '../runtime/index.ts'

/**
 * Lifecycle (B6): when is a request ours, and when is it not?
 *
 *   building ──▶ warming ──▶ ready ──▶ draining ──▶ stopped
 *        └──────────┴──────────────────▲  a signal may come at any time
 *
 * Any other step is a fault of ours and throws.
 */
export type Phase = 'building' | 'warming' | 'ready' | 'draining' | 'stopped'

const NEXT: Readonly<Record<Phase, readonly Phase[]>> = {
  building: ['warming', 'draining'],
  warming: ['ready', 'draining'],
  ready: ['draining'],
  draining: ['stopped'],
  stopped: [],
}

/** What a balancer is told. */
export type Standing = 'ready' | 'warming' | 'draining' | 'degraded'

/** Something whose trouble makes this instance a bad choice, unless it is advisory. */
export interface Probe {
  readonly name: string
  /** What is wrong, in words fit for a caller; undefined when nothing is. */
  degraded(): string | undefined
  /** Worth telling, and no reason to send requests elsewhere. */
  readonly advisory?: boolean
}

/** A phase has ended. */
export interface PhaseEnded {
  readonly phase: Phase
  readonly next: Phase
  readonly durationMs: number
}

export class Lifecycle {
  #phase: Phase = 'building'
  #wasReady = false
  #sinceMs: number
  readonly #probes: readonly Probe[]
  readonly #clock: Clock
  readonly #channel: Channel<PhaseEnded>

  /** `sinceMs`: when building began, if that was before now. */
  constructor(probes: readonly Probe[], clock: Clock, channel: Channel<PhaseEnded>, sinceMs = clock.nowMs()) {
    this.#probes = probes
    this.#clock = clock
    this.#channel = channel
    this.#sinceMs = sinceMs
  }

  get phase(): Phase {
    return this.#phase
  }

  /** A drain that begins before takes nobody in. */
  get wasReady(): boolean {
    return this.#wasReady
  }

  become(next: Phase): void {
    if (!NEXT[this.#phase].includes(next)) throw new TypeError(`no way from ${this.#phase} to ${next}`)
    const nowMs = this.#clock.nowMs()
    const ended = { phase: this.#phase, next, durationMs: nowMs - this.#sinceMs }
    this.#phase = next
    if (next === 'ready') this.#wasReady = true
    this.#sinceMs = nowMs
    this.#channel.publish(ended)
  }

  /** The phase as a balancer should read it, and what each probe says. */
  readiness(): { status: Standing; phase: Phase; checks: Record<string, string> } {
    const phase = this.#phase
    const checks = Object.fromEntries(this.#probes.map(probe => [probe.name, probe.degraded() ?? 'ok']))
    const degraded = this.#probes.some(({ name, advisory }) => !advisory && checks[name] !== 'ok')
    switch (phase) {
      case 'building':
      case 'warming':
        return { status: 'warming', phase, checks }
      case 'ready':
        return { status: degraded ? 'degraded' : 'ready', phase, checks }
      case 'draining':
      case 'stopped':
        return { status: 'draining', phase, checks }
    }
  }
}
