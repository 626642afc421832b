import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors/index.ts'
import { OutboundFailure } from '../../src/outbound/index.ts'
import { listening } from './listening.ts'

const never = new AbortController().signal

/** A listener that warms up, and what each step says. */
async function rehearsing() {
  const world = await listening()
  world.phase.refusal = new Problem('warming-up')
  const steps = world.rehearsal.steps('127.0.0.1', world.port)
  const play = async () => {
    const said: (string | undefined)[] = []
    for (const step of steps) said.push(await step.play(never))
    return said
  }
  return { ...world, steps, play }
}

describe('a rehearsal', () => {
  test('goes through the listener in spite of the phase, finds everything well, and is nobody’s traffic', async () => {
    const { play, steps, ended, gate } = await rehearsing()
    expect(steps.map(({ name }) => name)).toEqual([
      'an invalid body',
      'an unknown order',
      'a document',
      'an order',
    ])
    for (let round = 0; round < 30; round++) expect(await play()).toEqual(Array(4).fill(undefined))
    expect(ended).toEqual([])
    expect(gate.inFlight).toBe(0)
  })

  test('is the only one that is let in', async () => {
    const { port, ended } = await rehearsing()
    const answer = await fetch(`http://127.0.0.1:${port}/v1/orders/${randomUUID()}`, {
      headers: { authorization: 'Bearer demo' },
    })
    expect([answer.status, ended.map(({ code }) => code)]).toEqual([503, ['warming-up']])
  })

  test('is nobody once the phase is over', async () => {
    const { play, phase, ended } = await rehearsing()
    phase.refusal = undefined
    expect(await play()).toEqual(['unauthenticated', 'unauthenticated', undefined, 'unauthenticated'])
    expect(ended.map(({ status }) => status)).toEqual([401, 401, 200, 401])
  })

  test('tells of a store that cannot work', async () => {
    const { play, store } = await rehearsing()
    store.onLookup = () => ({ kind: 'unavailable' })
    expect(await play()).toEqual([undefined, 'store-unavailable', undefined, undefined])
    store.onLookup = undefined
    store.onCommit = () => ({ kind: 'unavailable' })
    expect(await play()).toEqual([undefined, undefined, undefined, 'store-unavailable'])
  })

  test('tells of pricing that fails', async () => {
    const { play, pricing } = await rehearsing()
    pricing.answer = async () => {
      throw new OutboundFailure('failed')
    }
    expect(await play()).toEqual([undefined, undefined, undefined, 'pricing-unavailable'])
  })

  test('takes a commit that is slow for a fault', async () => {
    const { play, store } = await rehearsing()
    store.onCommit = () => ({ kind: 'unknown' })
    expect(await play()).toEqual([undefined, undefined, undefined, 'budget-exhausted'])
  })

  test('has no answer where nobody listens, and none once it is given up', async () => {
    const { rehearsal, steps, store } = await rehearsing()
    const [nobody] = rehearsal.steps('127.0.0.1', 1)
    expect(await nobody?.play(never)).toBe('no answer')
    expect(await steps[0]?.play(AbortSignal.abort())).toBe('no answer')
    expect(store.lookups).toBe(0)
  })
})
