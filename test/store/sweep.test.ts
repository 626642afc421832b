import { describe, expect, it } from 'vitest'
import { type PurgeAsk, type Purged, Sweep } from '../../src/store/index.ts'

function sweep(answers: (Purged | undefined)[]) {
  const asked: PurgeAsk[] = []
  const purge = async (ask: PurgeAsk) => {
    asked.push(ask)
    return answers.shift()
  }
  return { asked, sweep: new Sweep(purge, 1_000, 50) }
}

describe('a sweep', () => {
  it('goes on where the step before it ended, and begins again once a pass has ended', async () => {
    const world = sweep([
      { deleted: 50, next: 60 },
      { deleted: 0, next: 110 },
      { deleted: 3, next: undefined },
      { deleted: 0, next: undefined },
    ])
    const more: boolean[] = []
    for (const atMs of [5_000, 5_001, 5_002, 5_003]) more.push(await world.sweep.step(atMs))
    expect(more).toEqual([true, true, false, false])
    expect(world.asked).toEqual([
      { atMs: 5_000, madeBeforeMs: 4_000, limit: 50, after: 0 },
      { atMs: 5_001, madeBeforeMs: 4_001, limit: 50, after: 60 },
      { atMs: 5_002, madeBeforeMs: 4_002, limit: 50, after: 110 },
      { atMs: 5_003, madeBeforeMs: 4_003, limit: 50, after: 0 },
    ])
  })

  it('ends its pass where the store is unavailable', async () => {
    const world = sweep([{ deleted: 1, next: 9 }, undefined, { deleted: 1, next: 9 }])
    expect([await world.sweep.step(1), await world.sweep.step(2), await world.sweep.step(3)]).toEqual([
      true,
      false,
      true,
    ])
    expect(world.asked.map(({ after }) => after)).toEqual([0, 9, 0])
  })
})
