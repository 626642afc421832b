/**
 * The acceptance: plays the named scenarios, or all of them, one after another, against servers that it starts
 * itself. Each check prints `ok` or `FAILED` with what was seen; the last line is `N passed, N failed`.
 * Exit 0 when all passed, 1 when any failed, 2 when a name is unknown.
 */
import { budget } from './scenarios/budget.ts'
import { cache } from './scenarios/cache.ts'
import { concurrency } from './scenarios/concurrency.ts'
import { contract } from './scenarios/contract.ts'
import { degrade } from './scenarios/degrade.ts'
import { events } from './scenarios/events.ts'
import { hostile } from './scenarios/hostile.ts'
import { lifecycle } from './scenarios/lifecycle.ts'
import { rollover } from './scenarios/rollover.ts'
import { slowDependency } from './scenarios/slow-dependency.ts'
import { type Scenario, Trial } from './support/trial.ts'

const SCENARIOS: readonly Scenario[] = [
  contract,
  hostile,
  budget,
  degrade,
  slowDependency,
  concurrency,
  cache,
  events,
  lifecycle,
  rollover,
]

const names = process.argv.slice(2)
const unknown = names.filter(name => !SCENARIOS.some(scenario => scenario.name === name))
if (unknown.length > 0) {
  const known = SCENARIOS.map(({ name }) => name).join(', ')
  console.error(`no scenario is called ${unknown.join(', ')}; there are ${known}`)
  process.exit(2)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

let playing: Trial | undefined
// A promise that nobody waits for any more, in a check that has already failed: a fault of its scenario, not the end.
process.on('unhandledRejection', reason => playing?.abort(reason))

let passed = 0
let failed = 0
for (const scenario of SCENARIOS) {
  if (names.length > 0 && !names.includes(scenario.name)) continue
  const trial = await played(scenario)
  passed += trial.passed
  failed += trial.failed
}
console.log(`${passed} passed, ${failed} failed`)
// A hung scenario may have left something pending; it must not keep the process alive.
process.exit(failed > 0 ? 1 : 0)

async function played(scenario: Scenario): Promise<Trial> {
  console.log(scenario.name)
  const trial = new Trial()
  playing = trial
  let timer: NodeJS.Timeout | undefined
  const hung = new Promise<never>((_, reject) => {
    const fail = () => reject(new Error(`hung: the scenario ran past its ${scenario.limitMs} ms`))
    timer = setTimeout(fail, scenario.limitMs)
  })
  try {
    await Promise.race([scenario.play(trial), hung])
  } catch (error) {
    trial.abort(error)
  } finally {
    clearTimeout(timer)
    await trial.end()
  }
  return trial
}
