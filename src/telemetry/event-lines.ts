import type { Logger } from 'pino'
import type { LogStream } from './log-stream.ts'

/**
 * Writes lines that announce something: they count as written once they have left the process, and are written whatever
 * the level of the log. A reader that has stalled makes them wait; what finds no room is not written.
 */
export function eventLines(
  logger: Logger,
  stream: LogStream,
): (line: object, signal: AbortSignal) => Promise<boolean> {
  const announcer = logger.child({}, { level: 'info' })
  return (line, signal) => {
    if (signal.aborted) return Promise.resolve(false)
    announcer.info(line, 'event')
    return stream.flushed(signal)
  }
}
