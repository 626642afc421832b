import type { OutboxEvent } from '../../store/index.ts'
import { DELIVERED, type Delivery, type Sink } from './sink.ts'

/** Resolves with whether the line has left the process. */
export type WriteLine = (line: object, signal: AbortSignal) => Promise<boolean>

/** Announces events as lines of the log: what happened to which order, and nothing of what it holds. */
export function logSink(write: WriteLine): Sink {
  return {
    deliver: async ({ id, type, subject, tenant, atMs, traceparent }: OutboxEvent, signal) => {
      const line = { id, type, subject, tenant, time: new Date(atMs).toISOString(), traceparent }
      return (await write(line, signal)) ? DELIVERED : NOT_WRITTEN
    },
    close: async () => {},
  }
}

const NOT_WRITTEN: Delivery = Object.freeze({ kind: 'failed', reason: 'the log takes no more lines' })
