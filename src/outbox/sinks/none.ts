import { DELIVERED, type Sink } from './sink.ts'

/** Announces nothing: every event counts as delivered, and is purged in its time. */
export function noneSink(): Sink {
  return { deliver: async () => DELIVERED, close: async () => {} }
}
