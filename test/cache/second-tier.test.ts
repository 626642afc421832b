import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { secondTierContract, secondTierFence, type TierHarness } from '../contracts/second-tier.contract.ts'
import { type TierCall, TierPlace } from '../support/memory-tier.ts'
import { promisesSettled, VirtualClock } from '../support/virtual-clock.ts'
import { tierProgram } from './model/tier-program.ts'
import { type Edit, loadVariant } from './model/variant.ts'

type Twin = typeof import('../support/memory-tier.ts')

function harness({ TierPlace }: Pick<Twin, 'TierPlace'>): TierHarness {
  const clock = new VirtualClock()
  const place = new TierPlace(clock)
  return {
    open: () => place.connect(),
    passMs: ms => clock.advanceAsync(ms),
    wipe: () => place.wipe(),
    dispose: async () => {},
  }
}

/** Calls fail, hang, come late and lie, by turns; what is late comes with the next pause, the latest first. */
function faultyHarness({ TierPlace }: Pick<Twin, 'TierPlace'>): TierHarness {
  const clock = new VirtualClock()
  const place = new TierPlace(clock)
  const late: TierCall[] = []
  let calls = 0
  const fates: readonly ((call: TierCall) => void)[] = [
    call => call.answer(),
    call => void late.push(call),
    call => {
      call.apply()
      late.push(call)
    },
    call => call.fail(),
    call => {
      call.apply()
      call.fail()
    },
    call => call.apply(),
    call => call.answer(),
  ]
  return {
    open: () => {
      const tier = place.connect()
      tier.onCall = call => fates[calls++ % fates.length]?.(call)
      return tier
    },
    passMs: async () => {
      for (const call of late.splice(0).reverse()) call.answer()
      await promisesSettled()
    },
    wipe: () => place.wipe(),
    dispose: async () => {},
  }
}

const twin = { TierPlace }
secondTierContract('in memory', () => harness(twin))
secondTierFence('in memory, with faults', () => faultyHarness(twin))

const edit = (find: string, replace: string): Edit => ({ file: 'memory-tier.ts', find, replace })
const NO_LOOK_AT_PUT = edit('if (!this.#isValid(ticket, tags)) return', '')

describe('the fence of the second tier turns red for a twin', () => {
  it.each<[string, Edit[]]>([
    ['that looks at no ticket', [edit('(this.#invalidatedAt.get(tag) ?? 0) <= count', 'true')]],
    [
      'that looks at tickets when a text is put and never again',
      [edit('this.#isValid(kept.ticket, kept.tags) && ', '')],
    ],
    [
      'that takes any ticket, and a text for as new as its coming',
      [NO_LOOK_AT_PUT, edit('tags, ticket, endsAtMs', 'tags, ticket: "1." + this.#count, endsAtMs')],
    ],
    ['that clears what it has, and not what is on its way', [edit('this.#clearedAt <= count', 'true')]],
  ])('%s', async (_, edits) => {
    const variant = await loadVariant<Twin>(new URL('../support/memory-tier.ts', import.meta.url), edits)
    const holds = fc.asyncProperty(tierProgram.steps, async steps => {
      expect(await tierProgram.outOfDate(harness(variant), steps)).toEqual([])
    })
    const { failed } = await fc.check(holds, { seed: 1, numRuns: 2_000, endOnFailure: true })
    expect(failed).toBe(true)
  })
})
