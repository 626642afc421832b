import type { PurgeAsk, Purged } from '../port.ts'
import type { Commits } from './commits.ts'
import { ITEM } from './protocol.ts'
import type { Purgeable } from './purge-steps.ts'

/** Has the writer take one step, in a group with orders. */
export async function purge(
  commits: Pick<Commits, 'run'>,
  what: Purgeable,
  { atMs, madeBeforeMs, limit, after }: PurgeAsk,
): Promise<Purged | undefined> {
  const answer = await commits.run([ITEM.purge, what, atMs, madeBeforeMs, limit, after])
  if (answer === undefined) return undefined
  const [deleted, next] = answer as [number, number?]
  return { deleted, next }
}
