import fc from 'fast-check'
import { expect, test } from 'vitest'
import { leaseChannels, Settlement } from '../../src/lease/index.ts'

type Kind = 'success' | 'refusal' | 'budget' | 'hang-up' | 'drain'
const kinds = fc.array(fc.constantFrom<Kind>('success', 'refusal', 'budget', 'hang-up', 'drain'))

function counted() {
  const channels = leaseChannels()
  const late: string[] = []
  channels.late.subscribe(({ kind }) => late.push(kind))
  return { settlement: new Settlement<Kind>(channels.late), late }
}

test('of any number of ends in any order exactly the first wins, for good; the rest are counted as late', () => {
  fc.assert(
    fc.property(kinds, calls => {
      const { settlement, late } = counted()
      expect(settlement.winner).toBeUndefined()
      const won = calls.filter(kind => {
        const first = settlement.settle(kind)
        expect(settlement.winner).toBe(calls[0])
        return first
      })
      expect(won).toEqual(calls.slice(0, 1))
      expect(late).toEqual(calls.slice(1))
    }),
  )
})

test('racing ends write once, however their promises interleave', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), kinds, async (scheduler, calls) => {
      const { settlement, late } = counted()
      const order: Kind[] = []
      const written: Kind[] = []
      const racers = calls.map(async kind => {
        await scheduler.schedule(Promise.resolve())
        order.push(kind)
        if (settlement.settle(kind)) written.push(kind)
      })
      await scheduler.waitAll()
      await Promise.all(racers)
      expect(written).toEqual(order.slice(0, 1))
      expect(settlement.winner).toBe(order[0])
      expect(late).toEqual(order.slice(1))
    }),
  )
})

test('an end that settles again while the late one is being reported changes nothing', () => {
  const channels = leaseChannels()
  const settlement = new Settlement<Kind>(channels.late)
  const late: string[] = []
  channels.late.subscribe(({ kind }) => {
    late.push(kind)
    if (late.length < 3) expect(settlement.settle('drain')).toBe(false)
  })
  expect(settlement.settle('success')).toBe(true)
  expect(settlement.settle('budget')).toBe(false)
  expect(settlement.winner).toBe('success')
  expect(late).toEqual(['budget', 'drain', 'drain'])
})
