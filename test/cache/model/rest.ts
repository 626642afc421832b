import type { CacheOptions } from '../../../src/cache/options.ts'
import { promisesSettled, type VirtualClock } from '../../support/virtual-clock.ts'
import type { Instance } from './instance.ts'
import type { Verdict } from './verdict.ts'

/** Asks a cache at rest for all that it may do at once: what some load has never given back is missing now. */
export async function expectWhole(instance: Instance, { clock, verdict, options }: RestParts): Promise<void> {
  const { fillers } = instance
  fillers.held = true
  const started = fillers.started
  const most = Math.min(MOST_PROBED, options.maxConcurrentLoads)
  const reads = Array.from({ length: most }, (_, index) =>
    instance.readFiller(`rest ${index}`).catch(() => undefined),
  )
  await promisesSettled()
  const begun = fillers.started - started
  if (begun < most) verdict.blame('rest', `only ${begun} of ${most} loads may run`)
  for (const open of fillers.open.splice(0)) open()
  fillers.held = false
  await Promise.all(reads)
  if (options.refreshAheadRatio === 0) return
  // Into the last half of an entry's time.
  await instance.readFiller('rest').catch(() => undefined)
  await clock.advanceAsync(700)
  const before = fillers.started
  const held = instance.peekFiller('rest')
  if (held === undefined || fillers.started === before) verdict.blame('rest', 'nothing may refresh any more')
}

// A limit that is higher than that no story uses up.
const MOST_PROBED = 2

interface RestParts {
  readonly clock: VirtualClock
  readonly verdict: Verdict
  readonly options: CacheOptions
}
