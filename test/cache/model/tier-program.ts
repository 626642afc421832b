import fc from 'fast-check'
import type { SecondTier } from '../../../src/cache/index.ts'
import type { TierHarness } from '../../contracts/second-tier.contract.ts'
import { never } from '../../support/order-write.ts'

const KEYS = ['a', 'b', 'ab']
const key = fc.constantFrom(...KEYS)
const step = fc.record({
  by: fc.nat({ max: 1 }),
  call: fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('get' as const), key }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), which: fc.nat({ max: 5 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('invalidate' as const), key }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const) }) },
  ),
  /** Before the next call something may be answered. */
  pauses: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

interface Ticket {
  readonly key: string
  readonly ticket: string
  /** Its place among all that happened. */
  readonly handedOutAt: number
}

interface Move {
  readonly tags: readonly string[]
  readonly askedAt: number
  confirmedAt: number
}

/** A key's letters are its tags. */
const tagsOf = (name: string) => [...name]

/** Two instances call whatever they like; the texts that they were given and should not have been, in words. */
async function outOfDate(harness: TierHarness, steps: readonly Step[]): Promise<string[]> {
  const tiers: [SecondTier, SecondTier] = [await harness.open(), await harness.open()]
  const tickets: Ticket[] = []
  const puts: Ticket[] = []
  const moves: Move[] = []
  const faults: string[] = []
  let happened = 0

  const judge = (name: string, text: string, askedAt: number) => {
    const put = puts[Number(text)]
    if (put === undefined || put.key !== name) {
      faults.push(`${text} was never put under ${name}`)
      return
    }
    const since = moves.filter(
      ({ tags, ...move }) =>
        move.askedAt > put.handedOutAt &&
        move.confirmedAt < askedAt &&
        tags.some(tag => tagsOf(name).includes(tag)),
    )
    if (since.length > 0) faults.push(`${name} was found out of date`)
  }
  const get = (tier: SecondTier, name: string) => {
    const askedAt = happened++
    tier.get(name, tagsOf(name), never()).then(
      answer => {
        if (answer.kind === 'found') judge(name, answer.text, askedAt)
        else tickets.push({ key: name, ticket: answer.ticket, handedOutAt: happened++ })
      },
      () => undefined,
    )
  }
  const put = (tier: SecondTier, which: number) => {
    // The latest is tried most, and an old one now and then.
    const ticket = tickets.at(-1 - (which % Math.max(1, tickets.length)))
    if (ticket === undefined) return
    const text = String(puts.push(ticket) - 1)
    const rest = { tags: tagsOf(ticket.key), ttlMs: 60_000, ticket: ticket.ticket }
    tier.put(ticket.key, text, rest).catch(() => undefined)
  }
  const move = (tags: readonly string[], asked: Promise<void>) => {
    const moved: Move = { tags, askedAt: happened++, confirmedAt: Number.POSITIVE_INFINITY }
    moves.push(moved)
    asked.then(
      () => {
        moved.confirmedAt = happened++
      },
      () => undefined,
    )
  }

  for (const { by, call, pauses } of steps) {
    const tier = by === 0 ? tiers[0] : tiers[1]
    if (call.do === 'get') get(tier, call.key)
    if (call.do === 'put') put(tier, call.which)
    if (call.do === 'invalidate') move(tagsOf(call.key), tier.invalidate(tagsOf(call.key)))
    if (call.do === 'clear') move(KEYS, tier.clear())
    if (pauses) await harness.passMs(0)
  }
  await harness.passMs(0)
  for (const name of KEYS) get(tiers[0], name)
  await harness.passMs(0)
  return faults
}

export const tierProgram = { steps: fc.array(step, { maxLength: 30 }), outOfDate }
