import { describe, expect, test } from 'vitest'
import { Lifecycle, lifecycleChannels, type Phase, type Probe } from '../../src/lifecycle/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const PHASES: readonly Phase[] = ['building', 'warming', 'ready', 'draining', 'stopped']
/** A way to each phase. */
const WAYS: Readonly<Record<Phase, readonly Phase[]>> = {
  building: [],
  warming: ['warming'],
  ready: ['warming', 'ready'],
  draining: ['draining'],
  stopped: ['draining', 'stopped'],
}
const ALLOWED = new Set([
  'building → warming',
  'building → draining',
  'warming → ready',
  'warming → draining',
  'ready → draining',
  'draining → stopped',
])

function lifecycleIn(phase: Phase, probes: readonly Probe[] = []) {
  const clock = new VirtualClock()
  const channels = lifecycleChannels()
  const ended: unknown[] = []
  const lifecycle = new Lifecycle(probes, clock, channels.phase)
  for (const step of WAYS[phase]) lifecycle.become(step)
  channels.phase.subscribe(message => ended.push(message))
  return { clock, lifecycle, ended }
}

describe('the lifecycle', () => {
  const steps = PHASES.flatMap(from => PHASES.map(to => ({ from, to, step: `${from} → ${to}` })))

  test.each(steps.filter(({ step }) => ALLOWED.has(step)))('goes $step and reports it', ({ from, to }) => {
    const { clock, lifecycle, ended } = lifecycleIn(from)
    clock.advance(1_234)
    lifecycle.become(to)
    expect(lifecycle.phase).toBe(to)
    expect(ended).toEqual([{ phase: from, next: to, durationMs: 1_234 }])
  })

  test.each(steps.filter(({ step }) => !ALLOWED.has(step)))('never goes $step', ({ from, to }) => {
    const { lifecycle, ended } = lifecycleIn(from)
    expect(() => lifecycle.become(to)).toThrow(TypeError)
    expect(lifecycle.phase).toBe(from)
    expect(ended).toEqual([])
  })

  test.each([
    ['building', 'warming'],
    ['warming', 'warming'],
    ['ready', 'ready'],
    ['draining', 'draining'],
    ['stopped', 'draining'],
  ] as const)('%s reads as %s to a balancer', (phase, status) => {
    expect(lifecycleIn(phase).lifecycle.readiness()).toEqual({ status, phase, checks: {} })
  })

  test('asks its probes each time, names each one, and degrades only while ready', () => {
    let trouble: string | undefined
    const probes = [
      { name: 'store', degraded: () => trouble },
      { name: 'other', degraded: () => undefined },
    ]
    const { lifecycle } = lifecycleIn('ready', probes)
    expect(lifecycle.readiness()).toMatchObject({ status: 'ready', checks: { store: 'ok', other: 'ok' } })
    trouble = 'disk full'
    const checks = { store: 'disk full', other: 'ok' }
    expect(lifecycle.readiness()).toMatchObject({ status: 'degraded', checks })
    expect(lifecycleIn('warming', probes).lifecycle.readiness()).toMatchObject({ status: 'warming', checks })
    expect(lifecycleIn('draining', probes).lifecycle.readiness()).toMatchObject({
      status: 'draining',
      checks,
    })
    trouble = undefined
    expect(lifecycle.readiness().status).toBe('ready')
  })

  test('tells of the trouble of an advisory probe and stays ready, unless another has some too', () => {
    let trouble: string | undefined
    const probes = [
      { name: 'store', degraded: () => trouble },
      { name: 'outbox', degraded: () => 'events wait', advisory: true },
    ]
    const { lifecycle } = lifecycleIn('ready', probes)
    expect(lifecycle.readiness()).toMatchObject({
      status: 'ready',
      checks: { store: 'ok', outbox: 'events wait' },
    })
    trouble = 'disk full'
    expect(lifecycle.readiness()).toMatchObject({
      status: 'degraded',
      checks: { store: 'disk full', outbox: 'events wait' },
    })
  })

  test('knows whether it was ever ready', () => {
    const seen = PHASES.map(phase => [phase, lifecycleIn(phase).lifecycle.wasReady])
    const { lifecycle } = lifecycleIn('ready')
    lifecycle.become('draining')
    expect([...seen, ['draining after ready', lifecycle.wasReady]]).toEqual([
      ['building', false],
      ['warming', false],
      ['ready', true],
      ['draining', false],
      ['stopped', false],
      ['draining after ready', true],
    ])
  })
})
