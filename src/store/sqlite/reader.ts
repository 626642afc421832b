import { workerData } from 'node:worker_threads'
import type { Database } from 'better-sqlite3'
import { openForReading } from './database.ts'
import { type Fault, faultOf, reasonOf } from './faults.ts'
import { type Answered, type ConnectionOptions, FINDING, type Flat, LOOKUP } from './protocol.ts'
import { serve } from './serve.ts'
import {
  PROBE_READ,
  SELECT_BACKLOG,
  SELECT_DEAD,
  SELECT_EVENTS,
  SELECT_ORDER,
  SELECT_ORDERS,
} from './statements.ts'
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
  const selectOrders = db.prepare(SELECT_ORDERS).raw()
  const selectEvents = db.prepare(SELECT_EVENTS).raw()
  const selectDead = db.prepare(SELECT_DEAD).raw()
  const selectBacklog = db.prepare(SELECT_BACKLOG).raw()
  const probe = db.prepare(PROBE_READ)

  function look(kind: string | number | undefined, fields: Flat): Flat | undefined {
    switch (kind) {
      case LOOKUP.reply:
        return findReply(...fields)
      case LOOKUP.order:
        return selectOrder.get(...fields) as Flat | undefined
      case LOOKUP.orders:
        return (selectOrders.all(...fields) as Flat[]).flat()
      case LOOKUP.events:
        return (selectEvents.all(...fields) as Flat[]).flat()
      case LOOKUP.dead:
        return (selectDead.all(...fields) as Flat[]).flat()
      case LOOKUP.backlog:
        return selectBacklog.get() as Flat
      default:
        throw new TypeError('a look-up is of no kind')
    }
  }

  return batch => {
    const values: Flat = []
    let trouble: { fault: Fault; reason: string } | undefined
    const attempt = (question: () => Flat | undefined) => {
      try {
        const found = question()
        if (found) values.push(FINDING.found, found.length, ...found)
        else values.push(FINDING.absent)
      } catch (error) {
        values.push(FINDING.failed)
        trouble = { fault: faultOf(error) ?? 'refused', reason: reasonOf(error) }
      }
    }
    if (batch.length === 0) attempt(() => void probe.get())
    for (let at = 0; at < batch.length; ) {
      const kind = batch[at++]
      const length = Number(batch[at++])
      const fields = batch.slice(at, at + length)
      at += length
      attempt(() => look(kind, fields))
    }
    return { kind: 'answered', values, proven: true, ...trouble }
  }
}
