import type { Place } from './schedule.ts'
import type { Edit } from './variant.ts'
import type { Sentence } from './verdict.ts'

/** The cache without one of the things that keep a sentence true, and that sentence. */
export interface Mutation {
  readonly without: string
  readonly breaks: Sentence
  readonly edits: readonly Edit[]
  /** Where alone it can show. */
  readonly place?: Place
}

const inQuery = (find: string, replace: string): Edit => ({ file: 'cached-query.ts', find, replace })
const inFlight = (find: string, replace: string): Edit => ({ file: 'flight.ts', find, replace })
const inFence = (find: string, replace: string): Edit => ({ file: 'fence.ts', find, replace })
const inGate = (find: string, replace: string): Edit => ({ file: 'tier-gate.ts', find, replace })
const inCache = (find: string, replace: string): Edit => ({ file: 'cache.ts', find, replace })

/** Bounds so small that a schedule reaches them. */
export const SMALL_BOUNDS: readonly Edit[] = [
  inFence('const CAPACITY = 16_384', 'const CAPACITY = 3'),
  inGate('const MAX_UNSETTLED = 16_384', 'const MAX_UNSETTLED = 2'),
]

const FILL_OF_LOAD = 'tiers.keep(loaded, { key, tags, stamp, ticket })\n        flight.land'
const FILL_OF_BATCH = 'answers[index] = loaded\n        tiers.keep(loaded, { key, tags, stamp, ticket })'

export const MUTATIONS: readonly Mutation[] = [
  {
    without: 'the stamp: a load counts as begun when it lands',
    breaks: 'fresh',
    edits: [inQuery(FILL_OF_LOAD, FILL_OF_LOAD.replace('stamp', 'stamp: fence.now'))],
  },
  {
    without: 'the stamp of a flight: it counts as begun after everything',
    breaks: 'fresh',
    edits: [inFlight('this.stamp = stamp\n    const nowMs', 'this.stamp = Infinity\n    const nowMs')],
  },
  {
    without: 'the join check',
    breaks: 'fresh',
    edits: [inQuery('if (current && !fence.hasMoved(tags, current.stamp))', 'if (current)')],
  },
  {
    without: 'the floor: what is forgotten has never moved',
    breaks: 'fresh',
    edits: [...SMALL_BOUNDS, inFence('let last = this.#floor', 'let last = 0')],
  },
  {
    without: 'the condition of the removal: an old flight takes a newer one away',
    breaks: 'once',
    place: 'alone',
    edits: [inQuery('if (this.#flights.get(key) === flight) this.#flights', 'this.#flights')],
  },
  {
    without: 'the deletion of what carries a tag that moves',
    breaks: 'fresh',
    edits: [inCache('for (const tag of tags) this.#l1.deleteTagged(tag)', '')],
  },
  {
    without: 'the look at unsettled tags before the second tier',
    breaks: 'fresh',
    place: 'tiered',
    edits: [
      inGate('this.#shutAt === 0 && !tags.some(tag => this.#unsettled.has(tag))', 'this.#shutAt === 0'),
    ],
  },
  {
    without: 'the look at whether the gate is shut',
    breaks: 'fresh',
    place: 'tiered',
    edits: [...SMALL_BOUNDS, inGate('this.#shutAt === 0 && !tags', '!tags')],
  },
  {
    without: 'the fence of what one reader finds in the second tier',
    breaks: 'fresh',
    place: 'tiered',
    edits: [
      inQuery(
        'tiers.keep(loaded, { key, tags, stamp })\n    flight.land',
        'tiers.keep(loaded, { key, tags, stamp: this.#parts.fence.now })\n    flight.land',
      ),
    ],
  },
  {
    without: 'the fence of what a batch finds in the second tier',
    breaks: 'fresh',
    place: 'tiered',
    edits: [
      inQuery(
        'answers[index] = loaded as Loaded<Value>\n    tiers.keep(loaded, { key, tags, stamp })',
        'answers[index] = loaded as Loaded<Value>\n    tiers.keep(loaded, { key, tags, stamp: fence.now })',
      ),
    ],
  },
  {
    without: 'the fence of what a batch loads',
    breaks: 'fresh',
    edits: [inQuery(FILL_OF_BATCH, FILL_OF_BATCH.replace('stamp', 'stamp: fence.now'))],
  },
  {
    without: 'the fence of what a refresh loads',
    breaks: 'fresh',
    edits: [inQuery(FILL_OF_LOAD, FILL_OF_LOAD.replace('stamp', 'stamp: flight.pinned ? fence.now : stamp'))],
  },
  {
    without: 'the moment before which a loader shares nothing',
    breaks: 'fresh',
    edits: [inQuery('notBefore: fence.lastMove(tags)', 'notBefore: 0')],
  },
  {
    without: 'the moment before which the loader of a batch shares nothing',
    breaks: 'fresh',
    edits: [
      inQuery('const notBefore = fence.lastMove(open.flatMap(({ tags }) => tags))', 'const notBefore = 0'),
    ],
  },
  {
    without: 'the fence where news were lost',
    breaks: 'fresh',
    place: 'shared',
    edits: [inCache('this.#fence.moveAll()\n', '\n')],
  },
  {
    without: 'the deletion of everything where news were lost',
    breaks: 'fresh',
    place: 'shared',
    edits: [inCache('this.#l1.clear()', '')],
  },
  {
    without: 'the count of the gate: a confirmation settles what was invalidated after its question',
    breaks: 'fresh',
    place: 'shared',
    edits: [inGate('if (count <= upTo) this', 'this')],
  },
  {
    without: 'the end of a flight: what a load brings afterwards is kept',
    breaks: 'given up',
    edits: [inQuery('        if (flight.ended) return\n', '')],
  },
  {
    without: 'the others: a waiter that leaves ends the flight for all',
    breaks: 'ends',
    edits: [inFlight('if (this.#waiters.size > 0 || this.#deps.pinned)', 'if (this.#deps.pinned)')],
  },
  {
    without: 'the return of the permit',
    breaks: 'rest',
    edits: [inQuery('permits[permit]--', '')],
  },
  {
    without: 'the end of listening to a waiter’s signal',
    breaks: 'rest',
    edits: [
      inFlight("waiter.signal?.removeEventListener('abort', waiter)\n      tell(waiter)", 'tell(waiter)'),
    ],
  },
  {
    without: 'the look at whether a load of the key is under way before its ticket is used',
    breaks: 'fresh',
    place: 'shared',
    edits: [inQuery('return this.#running.has(key) ? undefined : ticket', 'return ticket')],
  },
  {
    without: 'the timer of the first who waits along with a refresh',
    breaks: 'ends',
    edits: [
      inFlight('if (this.#waiters.size === 1) this.#arm()', 'if (this.#timer === undefined) this.#arm()'),
    ],
  },
  {
    without: 'the word to stop to a load that is given up on',
    breaks: 'rest',
    edits: [inFlight('return this.#controller.abort(failure)', 'return')],
  },
]
