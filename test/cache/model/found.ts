import { ALL_TURNS, type Move, type Schedule, type Way } from './schedule.ts'

/** Nothing happens, and nothing is out of the ordinary. */
const CALM: Schedule = {
  steps: [],
  ways: [],
  calls: [],
  start: { a: 1, b: 1, c: 1 },
  inSecond: [],
  inFirst: [],
  place: 'alone',
  hot: false,
  maxBytes: 1_000_000,
  negativeSeconds: 1,
  refreshAheadRatio: 0,
  jitterRatio: 0,
  waitTimeoutMs: 100,
  maxConcurrentLoads: 64,
  earlyMs: 0,
}

const DEAF: Way = { looksAtOnce: true, obeys: false, throws: false, shares: false, large: false, ends: false }

const inOrder = (...moves: Move[]): Schedule['steps'] => moves.map(move => ({ move, turns: ALL_TURNS }))
const read = (at = 0, question: 'a' | 'b' = 'a'): Move => ({ do: 'read', at, question, leaves: 'never' })
const advance = (ms: number): Move => ({ do: 'advance', ms, wallBackMs: 0 })
const answerFirst: Move = { do: 'answer', which: 0, how: 'ok' }

/** Schedules that have broken a sentence once; each is played again before all others. */
export const FOUND: readonly Schedule[] = [
  // The loop is busy from before the query's end to after the load's: it was given up on and never told to stop.
  {
    ...CALM,
    ways: [DEAF],
    steps: inOrder(read(), read(0, 'b'), { do: 'stall', ms: 450, which: 1, how: 'ok' }, read()),
  },
  // A refresh is joined as its entry ends, by a reader whose patience ends before the refresh's first own moment.
  {
    ...CALM,
    inFirst: ['a'],
    refreshAheadRatio: 0.5,
    waitTimeoutMs: 10,
    ways: [DEAF],
    steps: inOrder(advance(470), { do: 'ripen', at: 0, question: 'a' }, advance(15), read(), advance(60)),
  },
  // Another instance has not heard of the write, and holds a ticket of after it; its load shares a look of before it.
  {
    ...CALM,
    place: 'shared',
    ways: [DEAF, { ...DEAF, shares: true }],
    steps: inOrder(
      read(1),
      { do: 'write', at: 0, records: ['a'] },
      { do: 'batch', at: 1, questions: ['a'], leaves: 'later' },
      answerFirst,
      answerFirst,
      read(0),
    ),
  },
  // Whoever has left already waits for the second tier.
  {
    ...CALM,
    place: 'tiered',
    calls: ['hold'],
    steps: inOrder({ do: 'batch', at: 0, questions: ['a'], leaves: 'before' }),
  },
]
