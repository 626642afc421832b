import type { OutboxEvent } from '../../store/index.ts'
import { DELIVERED, type Sink } from './sink.ts'

/** Announces events as lines of the log: what happened to which order, and nothing of what it holds. */
export function logSink(write: (line: object) => void): Sink {
  return {
    deliver: async ({ id, type, subject, tenant, atMs, traceparent }: OutboxEvent) => {
      write({ id, type, subject, tenant, time: new Date(atMs).toISOString(), traceparent })
      return DELIVERED
    },
    close: async () => {},
  }
}
