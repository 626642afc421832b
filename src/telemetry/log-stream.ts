import type { EventEmitter } from 'node:events'

/** Where lines go: it emits `write` with the bytes that have left the process, and `drop` for a line without room. */
export interface LogDestination extends EventEmitter {
  write(line: string): unknown
}

/**
 * Log stream: knows which lines have left the process, by counting bytes on both sides. Waiting until all have would
 * not do: on a busy process there is always one more.
 */
export class LogStream {
  readonly #destination: LogDestination
  #handedBytes = 0
  #writtenBytes = 0
  #isDropped = false
  /** In the order of their lines. */
  #waiting: { readonly markBytes: number; readonly settle: (written: boolean) => void }[] = []

  constructor(destination: LogDestination) {
    this.#destination = destination
    destination.on('drop', () => {
      this.#isDropped = true
    })
    destination.on('write', (bytes: number) => {
      this.#writtenBytes += bytes
      const left = this.#waiting.findIndex(({ markBytes }) => markBytes > this.#writtenBytes)
      for (const { settle } of this.#waiting.splice(0, left < 0 ? this.#waiting.length : left)) settle(true)
    })
  }

  write(line: string): void {
    this.#isDropped = false
    this.#destination.write(line)
    if (!this.#isDropped) this.#handedBytes += Buffer.byteLength(line)
  }

  /** Whether the line that was written last has left the process; false also when the signal comes first. */
  flushed(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || this.#isDropped) return Promise.resolve(false)
    return new Promise(resolve => {
      const settle = (written: boolean) => {
        signal.removeEventListener('abort', onAbort)
        resolve(written)
      }
      const onAbort = () => {
        this.#waiting = this.#waiting.filter(waiting => waiting.settle !== settle)
        settle(false)
      }
      signal.addEventListener('abort', onAbort)
      this.#waiting.push({ markBytes: this.#handedBytes, settle })
    })
  }
}
