/**
 * Saboteur: loaded into the process under test ahead of it (`NODE_OPTIONS=--import`), to have happen on SIGUSR2 what no
 * request can bring about. `SABOTAGE` says what: `throw` an exception that nobody catches, `reject` a promise that
 * nobody handles, or end the `writer` thread.
 */
import { syncBuiltinESMExports } from 'node:module'
import threads, { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  const writers: threads.Worker[] = []
  const { Worker } = threads
  threads.Worker = class extends Worker {
    constructor(file: string | URL, options?: threads.WorkerOptions) {
      super(file, options)
      if (String(file).endsWith('/writer.ts')) writers.push(this)
    }
  }
  syncBuiltinESMExports()
  process.on('SIGUSR2', () => {
    const { SABOTAGE } = process.env
    if (SABOTAGE === 'throw') throw new Error('sabotage')
    if (SABOTAGE === 'reject') void Promise.reject(new Error('sabotage'))
    if (SABOTAGE === 'writer') void writers.at(-1)?.terminate()
  })
}
