import type { Scenario } from '../support/trial.ts'
import { announcing } from './events/announcing.ts'
import { ending } from './events/ending.ts'
import { parking } from './events/parking.ts'
import { poisoned } from './events/poisoned.ts'
import { sinks } from './events/sinks.ts'
import { telling } from './events/telling.ts'
import { trouble } from './events/trouble.ts'

/** What is committed is announced: at least once, in order per order, whatever the consumer does. */
export const events: Scenario = {
  name: 'events',
  limitMs: 180_000,
  async play(trial) {
    for (const theme of [announcing, trouble, poisoned, parking, telling, ending, sinks]) await theme(trial)
  },
}
