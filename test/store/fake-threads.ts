import type { Answered, Flat, ThreadAnswer, ThreadRequest } from '../../src/store/sqlite/protocol.ts'
import type { ThreadListener, ThreadPort } from '../../src/store/sqlite/thread.ts'

/** Threads that do only what a test tells them to; the newest is the one that is told. */
export class FakeThreads {
  /** How many were started. */
  started = 0
  /** What the newest was sent and has not answered. */
  requests: ThreadRequest[] = []
  #listener: ThreadListener | undefined

  readonly start = (listener: ThreadListener): ThreadPort => {
    this.started++
    this.requests = []
    this.#listener = listener
    return { post: request => void this.requests.push(request) }
  }

  get runs(): boolean {
    return this.#listener !== undefined
  }

  /** The batch in its hands. */
  get batch(): Flat | undefined {
    const [request] = this.requests
    return request === 'close' ? undefined : request
  }

  say(answer: ThreadAnswer): void {
    this.#listener?.onAnswer(answer)
  }

  answer(values: Flat, trouble: Partial<Pick<Answered, 'fault' | 'reason' | 'proven'>> = {}): void {
    this.requests.shift()
    this.say({ kind: 'answered', values, proven: trouble.fault === undefined, ...trouble })
  }

  exit(reason = 'a crash'): void {
    const listener = this.#listener
    this.#listener = undefined
    this.requests = []
    listener?.onExit(reason)
  }
}
