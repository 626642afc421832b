import { Worker } from 'node:worker_threads'
import { reasonOf } from './faults.ts'
import type { ThreadAnswer, ThreadRequest } from './protocol.ts'

/** The event loop's end of a running thread. */
export interface ThreadPort {
  post(request: ThreadRequest): void
}

export interface ThreadListener {
  onAnswer(answer: ThreadAnswer): void
  /** Once, and last: the thread is gone and will touch nothing any more. */
  onExit(reason: string): void
}

/** Starts a thread that runs `file` with `data`. */
export type StartThread = (file: URL, data: object, listener: ThreadListener) => ThreadPort

export const startWorker: StartThread = (file, data, listener) => {
  let reason = 'the thread ended'
  let worker: Worker
  try {
    worker = new Worker(file, { workerData: data })
  } catch (error) {
    // No thread to be had, as when the system is out of them: the same as one that ends at once.
    queueMicrotask(() => listener.onExit(reasonOf(error)))
    return { post: () => {} }
  }
  worker.on('message', (answer: ThreadAnswer) => listener.onAnswer(answer))
  worker.on('error', error => {
    reason = reasonOf(error)
  })
  worker.on('exit', () => listener.onExit(reason))
  return { post: request => worker.postMessage(request) }
}
