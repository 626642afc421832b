/**
 * Why the cache brought nothing although nobody said that loading fails.
 *   refused       as many loads as may run are running
 *   load-timeout  the load ran into its limit; all who waited for it are told
 *   wait-timeout  this waiter's own patience ended; the load goes on for the others
 */
export class CacheFailure extends Error {
  readonly kind: 'refused' | 'load-timeout' | 'wait-timeout'

  constructor(kind: CacheFailure['kind']) {
    super(kind)
    this.name = 'CacheFailure'
    this.kind = kind
  }
}
