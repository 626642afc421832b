import type { ClaimAsk, ClaimVerdict, Outbox, Settlement, SettleVerdict } from '../outbox-port.ts'
import type { Commits } from './commits.ts'
import type { Lookups } from './lookups.ts'
import { ITEM } from './protocol.ts'

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
    settle: async ({ token, exceptions }: Settlement): Promise<SettleVerdict> => {
      const named = exceptions.map(({ dueAtMs = null, ...exception }) => ({ ...exception, dueAtMs }))
      const answer = await commits.run([ITEM.settle, token, JSON.stringify(named)])
      if (answer === undefined) return 'unavailable'
      return answer[0] === 1 ? 'settled' : 'stale'
    },
    findDead: ({ limit, after = 0 }, signal) => lookups.findDead(after, limit, signal),
    redrive: async (ids, atMs) => count(await commits.run([ITEM.redrive, JSON.stringify(ids), atMs])),
    measure: signal => lookups.measureOutbox(signal),
    purgeDelivered: async (madeBeforeMs, limit) =>
      count(await commits.run([ITEM.purgeDelivered, madeBeforeMs, limit])),
  }
}

function count(answer: readonly (string | number)[] | undefined): number | undefined {
  return answer === undefined ? undefined : Number(answer[0])
}

const NOTHING: ClaimVerdict = { kind: 'nothing' }
const UNAVAILABLE: ClaimVerdict = { kind: 'unavailable' }
const NEVER = new AbortController()
