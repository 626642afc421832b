import type { ClaimAsk, ClaimVerdict, Outbox, Settlement, SettleVerdict } from '../outbox-port.ts'
import type { Commits } from './commits.ts'
import type { Lookups } from './lookups.ts'
import { ITEM } from './protocol.ts'
import { purge } from './purge.ts'

/**
 * The outbox over both threads: the writer decides whose events are, in the same groups as orders; the reader fetches
 * them, so that their text costs the writer nothing.
 */
export function sqliteOutbox(commits: Pick<Commits, 'run'>, lookups: Lookups): Outbox {
  return {
    claim: async ({ limit, leaseMs, atMs }: ClaimAsk): Promise<ClaimVerdict> => {
      const answer = await commits.run([ITEM.claim, limit, leaseMs, atMs])
      if (answer === undefined) return UNAVAILABLE
      const [token, first, last] = answer as number[]
      if (token === undefined || first === undefined || last === undefined) return NOTHING
      const events = await lookups.findEvents(token, first, last, NEVER.signal)
      if (events.kind === 'found') {
        // Of nothing, when its lease passed to another process before the events were read.
        return events.value.length > 0 ? { kind: 'claimed', token, events: events.value } : NOTHING
      }
      // Claimed and not to be read. If it cannot be handed back either, the end of its lease does so.
      await commits.run([ITEM.handBack, token])
      return UNAVAILABLE
    },
    settle: async ({ token, exceptions, keeps = [] }: Settlement): Promise<SettleVerdict> => {
      const named = exceptions.map(({ dueAtMs = null, ...exception }) => ({ ...exception, dueAtMs }))
      const answer = await commits.run([ITEM.settle, token, JSON.stringify(named), JSON.stringify(keeps)])
      if (answer === undefined) return 'unavailable'
      return answer[0] === 1 ? 'settled' : 'stale'
    },
    findDead: ({ limit, after = 0 }, signal) => lookups.findDead(after, limit, signal),
    redrive: (ids, atMs) => redrive(commits, lookups, ids, atMs),
    measure: signal => lookups.measureOutbox(signal),
    purgeDelivered: ask => purge(commits, 'events', ask),
  }
}

/** Goes through the dead page by page on the reader, which is where they are found by their ids. */
async function redrive(
  commits: Pick<Commits, 'run'>,
  lookups: Lookups,
  ids: readonly string[] | 'all',
  atMs: number,
): Promise<number | undefined> {
  const wanted = ids === 'all' ? undefined : new Set(ids)
  let redriven = 0
  for (let after: number | undefined = 0; after !== undefined && wanted?.size !== 0; ) {
    const page = await lookups.findDead(after, REDRIVEN_AT_ONCE, NEVER.signal)
    if (page.kind !== 'found') return undefined
    const chosen = page.value.filter(({ id }) => wanted?.delete(id) ?? true).map(({ sequence }) => sequence)
    if (chosen.length > 0) {
      const answer = await commits.run([ITEM.redrive, JSON.stringify(chosen), atMs])
      if (answer === undefined) return undefined
      redriven += Number(answer[0])
    }
    after = page.value[REDRIVEN_AT_ONCE - 1]?.sequence
  }
  return redriven
}

const NOTHING: ClaimVerdict = { kind: 'nothing' }
const UNAVAILABLE: ClaimVerdict = { kind: 'unavailable' }
const NEVER = new AbortController()
// About a millisecond of the writer; 100,000 at once took 113.
const REDRIVEN_AT_ONCE = 500
