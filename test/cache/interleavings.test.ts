import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FOUND } from './model/found.ts'
import type { Source } from './model/instance.ts'
import { MUTATIONS, SMALL_BOUNDS } from './model/mutations.ts'
import { type Place, type Schedule, schedulesIn } from './model/schedule.ts'
import { Story } from './model/story.ts'
import { type Edit, loadVariant } from './model/variant.ts'
import { SENTENCES, type Sentence } from './model/verdict.ts'

/**
 * The promise of the cache, and what else holds beside it, under random interleavings of everything that takes time:
 * a load's start, what it sees and what it brings; a write's commit, invalidation and acknowledgement; readers that
 * look, read, leave and read in batches; refreshes, evictions, the second tier's answers and the clock.
 */
const ENTRY = new URL('../../src/cache/cache.ts', import.meta.url)
const load = (edits: readonly Edit[]) => loadVariant<Source>(ENTRY, edits)

const unhandled: unknown[] = []
const collect = (error: unknown) => void unhandled.push(error)
beforeAll(() => void process.on('unhandledRejection', collect))
afterAll(() => void process.off('unhandledRejection', collect))

async function faultOf(sentence: Sentence, source: Source, schedule: Schedule): Promise<string | undefined> {
  const verdict = await new Story(source, schedule).play()
  return verdict.faultOf(sentence)
}

function holds(sentence: Sentence, source: Source, places?: readonly Place[]) {
  return fc.asyncProperty(schedulesIn(places), async schedule => {
    expect(await faultOf(sentence, source, schedule)).toBeUndefined()
    expect(unhandled.splice(0)).toEqual([])
  })
}

// Generous, for machines that do much else: nothing here waits for time to pass.
const LIMIT = { timeout: 120_000 }
const EXAMPLES = FOUND.map((schedule): [Schedule] => [schedule])
const sentences = Object.entries(SENTENCES) as [Sentence, string][]

describe.each<[string, readonly Edit[]]>([
  ['as it is', []],
  ['with bounds that a schedule reaches', SMALL_BOUNDS],
])('whatever the schedule, in the cache %s,', (_, edits) => {
  test.each(sentences.map(([sentence, words]) => [words, sentence] as const))(
    '%s',
    LIMIT,
    async (_, sentence) => {
      await fc.assert(holds(sentence, await load(edits)), {
        numRuns: 600,
        examples: EXAMPLES,
      })
    },
  )
})

describe('a schedule that is kept well otherwise breaks its sentence in the cache without', () => {
  test.each(MUTATIONS.map(mutation => [mutation.without, mutation] as const))(
    '%s',
    LIMIT,
    async (_, { breaks, edits, place }) => {
      // Always the same draw: it shows the hardest after 1,495 schedules, and most within a hundred.
      const draw = { seed: 1, numRuns: 20_000, endOnFailure: true, examples: EXAMPLES }
      const { counterexample } = await fc.check(holds(breaks, await load(edits), place && [place]), draw)
      const [schedule] = counterexample ?? []
      if (schedule === undefined) throw new Error('no schedule shows it')
      expect(await faultOf(breaks, await load(edits), schedule)).toBeTypeOf('string')
      expect(await faultOf(breaks, await load([]), schedule)).toBeUndefined()
    },
  )
})
