import type { Clock } from '../runtime/index.ts'

/** What a drain needs to know of a listener and of what is in progress behind it. */
export interface Drainable {
  /** Takes no new connections and lets idle ones go. */
  stopListening(): void
  /** Cuts every connection that is left. */
  cutConnections(): void
  inFlight(): number
  /** Calls back after each request that ends, until the returned function is called. */
  onEnded(listener: () => void): () => void
}

/**
 * Drains: serves on for `unreadyDelayMs`, so that the balancer can notice; closes the listener; waits for what is
 * in progress, at most `drainSeconds`. Silent sockets do not hold it up. Resolves with the number of requests
 * that had to be cut off.
 */
export async function drain(
  target: Drainable,
  options: { unreadyDelayMs: number; drainSeconds: number },
  clock: Clock,
): Promise<number> {
  await new Promise<void>(resolve => clock.setTimer(resolve, options.unreadyDelayMs))
  // What has arrived by now is read first: a connection with a request in it is not idle, only unread.
  await new Promise<void>(resolve => clock.afterPoll(resolve))
  target.stopListening()
  await idle(target, options.drainSeconds * 1000, clock)
  const dropped = target.inFlight()
  target.cutConnections()
  return dropped
}

function idle(target: Drainable, limitMs: number, clock: Clock): Promise<void> {
  return new Promise(resolve => {
    if (target.inFlight() === 0) return resolve()
    const done = () => {
      clock.clearTimer(timer)
      unsubscribe()
      resolve()
    }
    const timer = clock.setTimer(done, limitMs)
    const unsubscribe = target.onEnded(() => {
      if (target.inFlight() === 0) done()
    })
  })
}
