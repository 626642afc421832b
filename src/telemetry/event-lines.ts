import type { EventEmitter } from 'node:events'
import type { Logger } from 'pino'

/**
 * Lines of the log that announce something: they count as written once they have left the process, whatever the level
 * of the log. A reader that has stalled makes them wait; what finds no room is not written.
 */
export class EventLines {
  readonly #logger: Logger
  #waiting: ((written: boolean) => void)[] = []
  #isDropped = false

  /** `destination` is the logger's: it emits `drop` for a line without room, and `drain` whenever all are written. */
  constructor(logger: Logger, destination: EventEmitter) {
    this.#logger = logger.child({}, { level: 'info' })
    destination.on('drop', () => {
      this.#isDropped = true
    })
    destination.on('drain', () => {
      const waiting = this.#waiting
      this.#waiting = []
      for (const resolve of waiting) resolve(true)
    })
  }

  /** Whether it was written; false also when the signal comes first. */
  write(line: object, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    this.#isDropped = false
    this.#logger.info(line, 'event')
    if (this.#isDropped) return Promise.resolve(false)
    return new Promise(resolve => {
      const settle = (written: boolean) => {
        signal.removeEventListener('abort', onAbort)
        resolve(written)
      }
      const onAbort = () => {
        this.#waiting = this.#waiting.filter(other => other !== settle)
        settle(false)
      }
      signal.addEventListener('abort', onAbort)
      this.#waiting.push(settle)
    })
  }
}
