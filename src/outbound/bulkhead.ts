import { BulkheadRejectedError, bulkhead as policy } from 'cockatiel'
import { type Layer, OutboundFailure } from './call.ts'

/**
 * Bulkhead: at most `maxConcurrent` calls at once. Its queue is 0 places long, since a call that waits in
 * cockatiel's queue cannot be aborted; the next one is shed.
 */
export function bulkhead(maxConcurrent: number): Layer {
  const limit = policy(maxConcurrent, 0)
  return next => async call => {
    try {
      return await limit.execute(() => next(call))
    } catch (error) {
      throw error instanceof BulkheadRejectedError ? new OutboundFailure('shed', { cause: error }) : error
    }
  }
}
