import { workerData } from 'node:worker_threads'
import type { Database } from 'better-sqlite3'
import { openForReading } from './database.ts'
import { type Fault, faultOf, reasonOf } from './faults.ts'
import {
  type Answered,
  type ConnectionOptions,
  FINDING,
  type Flat,
  LOOKUP,
  LOOKUP_LENGTH,
} from './protocol.ts'
import { serve } from './serve.ts'
import { PROBE_READ, SELECT_ORDER } from './statements.ts'
import { storedReplies } from './stored-replies.ts'

/**
 * The reader thread: look-ups on a connection of its own, which a commit never blocks. Each is its own
 * transaction, begun after the batch arrived: it sees whatever was acknowledged before the look-up was asked.
 */
serve(() => {
  const db = openForReading(workerData as ConnectionOptions)
  const answer = lookups(db)
  return { answer, close: () => db.close() }
})

function lookups(db: Database): (batch: Flat) => Answered {
  const findReply = storedReplies(db)
  const selectOrder = db.prepare(SELECT_ORDER).raw()
  const probe = db.prepare(PROBE_READ)

  return batch => {
    const values: Flat = []
    let trouble: { fault: Fault; reason: string } | undefined
    const attempt = (look: () => Flat | undefined) => {
      try {
        const found = look()
        if (found) values.push(FINDING.found, ...found)
        else values.push(FINDING.absent)
      } catch (error) {
        values.push(FINDING.failed)
        trouble = { fault: faultOf(error) ?? 'refused', reason: reasonOf(error) }
      }
    }
    if (batch.length === 0) attempt(() => void probe.get())
    for (let at = 0; at < batch.length; at += LOOKUP_LENGTH) {
      const [kind, tenant, ...rest] = batch.slice(at, at + LOOKUP_LENGTH)
      attempt(() =>
        kind === LOOKUP.reply
          ? findReply(tenant, ...rest)
          : (selectOrder.get(tenant, rest[0]) as Flat | undefined),
      )
    }
    return { kind: 'answered', values, proven: true, ...trouble }
  }
}
