import { describe, expect, test } from 'vitest'
import { Claim, type Lane } from '../../src/outbox/claim.ts'
import { Lanes } from '../../src/outbox/lanes.ts'
import { someEvent } from './consumer.ts'

let sequence = 0

function lane(attempts: number, claim = new Claim(1, [])): Lane {
  return { claim, events: [someEvent({ sequence: ++sequence, attempts })] }
}

/** Begins whatever may begin. */
function begun(lanes: Lanes): Lane[] {
  const running: Lane[] = []
  for (let next = lanes.next(); next !== undefined; next = lanes.next()) running.push(next)
  return running
}

describe('lanes', () => {
  test('begin in the order of their coming, as many as there are places', () => {
    const lanes = new Lanes(3)
    const all = [lane(0), lane(0), lane(0), lane(0), lane(0)]
    for (const one of all) lanes.add(one)
    const first = begun(lanes)
    expect(first).toEqual(all.slice(0, 3))
    for (const one of first) lanes.done(one)
    expect(begun(lanes)).toEqual(all.slice(3))
  })

  test.each([
    [1, 1],
    [2, 1],
    [5, 3],
    [64, 32],
  ])('of %i places, second tries have %i at most, and the rest is left for what is new', (places, again) => {
    const lanes = new Lanes(places)
    for (let n = 0; n < 100; n++) lanes.add(lane(1))
    const running = begun(lanes)
    expect(running).toHaveLength(again)
    for (let n = 0; n < 100; n++) lanes.add(lane(0))
    expect(begun(lanes)).toHaveLength(places - again)
    const [one] = running
    if (one) lanes.done(one)
    expect(begun(lanes).map(({ events }) => events[0]?.attempts)).toEqual([1])
  })

  test('are taken out before they have begun: of a claim, what has failed before, or all', () => {
    const [mine, other] = [new Claim(1, []), new Claim(2, [])]
    const lanes = new Lanes(1)
    const [fresh, again, foreign] = [lane(0, mine), lane(2, mine), lane(1, other)]
    for (const one of [lane(0), fresh, again, foreign]) lanes.add(one)
    const [running] = begun(lanes)
    expect(running).toBe(again)
    lanes.add(again)
    expect(lanes.take(mine, 'again')).toEqual([again])
    expect(lanes.take(mine)).toEqual([fresh])
    expect(lanes.take()).toHaveLength(2)
    expect(lanes.take()).toEqual([])
  })
})
