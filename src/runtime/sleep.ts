import type { Clock } from './clock.ts'

/**
 * Waits `delayMs`, or less: rejects with the signal's reason as soon as it aborts. Leaves neither timer nor
 * listener behind, whichever way it ends.
 */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => {
      clock.clearTimer(timer)
      reject(signal.reason)
    }
    const timer = clock.setTimer(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, delayMs)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
