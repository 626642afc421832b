import fc from 'fast-check'
import { RECORDS } from './truth.ts'

// Few records, and one of them in most questions: what can collide, does.
const question = fc.constantFrom('a', 'a', 'a', 'a', 'b', 'ab', 'c')
const records = fc.constantFrom(['a'], ['a'], ['a'], ['a'], ['b'], ['a', 'b'])
const at = fc.nat({ max: 1 })
const which = fc.nat({ max: 7 })
/** Whether a reader's signal may abort when a step says so, or has aborted before it reads. */
export type Leaves = 'never' | 'later' | 'before'

/** A step of one kind, chosen `weight` times as often as one of weight 1. */
function kind<const Do extends string, Shape extends object>(
  weight: number,
  name: Do,
  shape: { [Key in keyof Shape]: fc.Arbitrary<Shape[Key]> },
) {
  return {
    weight,
    arbitrary: fc.record({ do: fc.constant(name), ...shape }) as unknown as fc.Arbitrary<{ do: Do } & Shape>,
  }
}

const answer = fc.constantFrom('ok', 'ok', 'ok', 'ok', 'passing', 'fail', 'short')
const ms = fc.oneof(
  { weight: 3, arbitrary: fc.nat({ max: 25 }) },
  { weight: 1, arbitrary: fc.integer({ min: 60, max: 110 }) },
  // An entry lasts a second.
  { weight: 1, arbitrary: fc.integer({ min: 450, max: 1_050 }) },
)

const move = fc.oneof(
  kind(10, 'read', {
    at,
    question,
    leaves: fc.constantFrom<Leaves[]>('never', 'never', 'later', 'later', 'before'),
  }),
  kind(3, 'peek', { at, question }),
  kind(3, 'batch', {
    at,
    questions: fc.uniqueArray(question, { minLength: 1, maxLength: 3 }),
    leaves: fc.constantFrom<Leaves[]>('later', 'later', 'later', 'before'),
  }),
  kind(2, 'abort', { which }),
  kind(2, 'commit', { at, records }),
  kind(2, 'invalidate', { which }),
  kind(2, 'acknowledge', { which }),
  /** Commit, invalidate and acknowledge in one go. */
  kind(6, 'write', { at, records }),
  /** Invalidates what nobody wrote, or what is none of these records. */
  kind(2, 'forget', { at, records: fc.constantFrom([], [], ['a'], ['b']), others: fc.nat({ max: 4 }) }),
  kind(4, 'snapshot', { which }),
  kind(7, 'answer', { which, how: answer }),
  kind(5, 'tier', {
    which,
    how: fc.constantFrom('apply', 'answer', 'answer', 'answer', 'fail', 'apply and fail'),
  }),
  kind(3, 'news', { at, which, how: fc.constantFrom('tell', 'lose') }),
  kind(1, 'evict', { at }),
  /** Meanwhile the wall clock is set back. */
  kind(4, 'advance', { ms, wallBackMs: fc.constantFrom(0, 0, 0, 1e9) }),
  /** Into the last half of an entry's time, and looks at it. */
  kind(2, 'ripen', { at, question }),
  /** The loop is busy; then timers fire, an answer that lay ready is read, and what waits for its poll goes on. */
  kind(1, 'stall', { ms, which, how: answer }),
)

/** How one load goes about it. */
const way = fc.record({
  /** Sees the truth as it begins; otherwise when a step says so, or as it answers. */
  looksAtOnce: fc.constantFrom(true, true, false),
  /** Stops when it is told to. */
  obeys: fc.boolean(),
  throws: fc.constantFrom(false, false, false, false, false, true),
  /** Joins what is under way elsewhere, as far as its fence lets it. */
  shares: fc.boolean(),
  /** Brings more than an entry may have. */
  large: fc.constantFrom(false, false, false, true),
  /** Answers in the end; otherwise never, unless a step says so. */
  ends: fc.boolean(),
})

/** As many turns of the microtasks as it takes. */
export const ALL_TURNS = 9

/** One instance, one with a second tier, or two that share it. */
export const PLACES = ['alone', 'tiered', 'shared'] as const
export type Place = (typeof PLACES)[number]

const parts = {
  steps: fc.array(fc.record({ move, turns: fc.constantFrom(0, 1, 2, ALL_TURNS, ALL_TURNS) }), {
    minLength: 1,
    maxLength: 60,
    size: 'max',
  }),
  ways: fc.array(way, { maxLength: 12, size: 'max' }),
  /** What becomes of calls to the second tier, one after the other: those beyond are answered at once. */
  calls: fc.array(fc.constantFrom('answer', 'hold', 'apply and hold'), { maxLength: 16, size: 'max' }),
  start: fc.record(Object.fromEntries(RECORDS.map(record => [record, fc.nat({ max: 1 })]))),
  /** What the second tier, or the first one of an instance, holds at the start. */
  inSecond: fc.constantFrom([], ['a'], ['a'], ['a', 'ab']),
  inFirst: fc.constantFrom([], ['a'], ['a'], ['ab']),
  hot: fc.boolean(),
  maxBytes: fc.constantFrom(500, 1_000, 1_000_000, 1_000_000),
  negativeSeconds: fc.constantFrom(0, 1),
  refreshAheadRatio: fc.constantFrom(0, 0.5),
  jitterRatio: fc.constantFrom(0, 0.1),
  waitTimeoutMs: fc.constantFrom(10, 100, 100),
  maxConcurrentLoads: fc.constantFrom(1, 2, 64),
  /** By how much every other timer fires early, as real ones may. */
  earlyMs: fc.constantFrom(0, 0, 1),
}

/** Schedules in any place, or in some only. */
export function schedulesIn(places: readonly Place[] = PLACES) {
  return fc.record({ ...parts, place: fc.constantFrom(...places) })
}

export type Schedule = ReturnType<typeof schedulesIn> extends fc.Arbitrary<infer T> ? T : never
export type Move = Schedule['steps'][number]['move']
export type Way = Schedule['ways'][number]
export type TierFate = Schedule['calls'][number]
export type Answer = typeof answer extends fc.Arbitrary<infer T> ? T : never
