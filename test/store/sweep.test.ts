import { expect, it } from 'vitest'
import { type PurgeAsk, type Purged, Sweep } from '../../src/store/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const INTERVAL_MS = 1_000

function sweeping(answers: (Purged | undefined)[]) {
  const clock = new VirtualClock()
  const startMs = clock.wallMs()
  const asked: [ms: number, PurgeAsk][] = []
  const sweep = new Sweep({
    clock,
    purge: async ask => {
      asked.push([ask.atMs - startMs, ask])
      return answers.shift()
    },
    retentionMs: 60_000,
    limit: 50,
    intervalMs: INTERVAL_MS,
    onFault: error => {
      throw error
    },
  })
  sweep.start()
  return { clock, asked, sweep }
}

it('goes on soon where the step before it ended, and begins again an interval after its pass', async () => {
  const { clock, asked } = sweeping([
    { deleted: 50, next: 60 },
    { deleted: 0, next: 110 },
    { deleted: 3, next: undefined },
  ])
  await clock.advanceAsync(2 * INTERVAL_MS + 100)
  expect(asked.map(([ms, { after }]) => [ms, after])).toEqual([
    [1_000, 0],
    [1_020, 60],
    [1_040, 110],
    [2_040, 0],
  ])
  for (const [, { atMs, madeBeforeMs, limit }] of asked) {
    expect([atMs - madeBeforeMs, limit]).toEqual([60_000, 50])
  }
})

it('ends its pass where the store is unavailable, and asks nothing once it is closed', async () => {
  const { clock, asked, sweep } = sweeping([{ deleted: 1, next: 9 }, undefined, { deleted: 1, next: 9 }])
  await clock.advanceAsync(2 * INTERVAL_MS + 20)
  expect(asked.map(([ms, { after }]) => [ms, after])).toEqual([
    [1_000, 0],
    [1_020, 9],
    [2_020, 0],
  ])
  await sweep.close()
  await clock.advanceAsync(10 * INTERVAL_MS)
  expect(asked).toHaveLength(3)
})
