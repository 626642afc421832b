import { parentPort } from 'node:worker_threads'
import { openReason } from './database.ts'
import { passingFaultOf } from './faults.ts'
import type { Answered, Flat, ThreadAnswer, ThreadRequest } from './protocol.ts'

/** What a thread does with a batch. */
export interface Served {
  answer(batch: Flat): Answered
  close(): void
}

/**
 * The life of a thread: opens, then answers one batch after the other until it is told to close. Cannot open: says
 * why and ends. An error that escapes `answer` is a fault of ours and ends the thread; the other side starts a new
 * one.
 */
export function serve(open: () => Served): void {
  if (parentPort === null) throw new TypeError('this file runs only as a thread')
  const port = parentPort
  const say = (answer: ThreadAnswer) => port.postMessage(answer)

  let served: Served
  try {
    served = open()
  } catch (error) {
    // Nothing listens to the port, so the thread ends by itself once this has left.
    return say({ kind: 'refused', reason: openReason(error), passing: passingFaultOf(error) })
  }
  port.on('message', (request: ThreadRequest) => {
    if (request !== 'close') return say(served.answer(request))
    served.close()
    port.close()
  })
  say({ kind: 'ready' })
}
