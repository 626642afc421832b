import type { Answer } from './answer.ts'
import type { Client } from './client.ts'
import { demand } from './expect.ts'
import type { SampleOrder } from './samples.ts'
import { until } from './until.ts'

const ATTEMPTS = 3

/**
 * Asks up to three times until every answer of one time comes between the two bounds; each answer of each time
 * must satisfy `judge`. On a shared machine a pause of the asker, or of the whole machine, must not look like a
 * slow server; a server that is slow of its own is slow each time.
 */
export async function promptly(
  [leastMs, mostMs]: readonly [number, number],
  ask: () => Promise<readonly Answer[]>,
  judge: (answer: Answer) => unknown,
): Promise<void> {
  const seen: string[] = []
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const answers = await ask()
    answers.forEach(judge)
    const times = answers.map(({ elapsedMs }) => elapsedMs)
    const [quickestMs, slowestMs] = [Math.min(...times), Math.max(...times)]
    if (quickestMs >= leastMs && slowestMs <= mostMs) return
    seen.push(`${quickestMs.toFixed(0)} to ${slowestMs.toFixed(0)} ms`)
  }
  demand(false, `answers after ${leastMs} to ${mostMs} ms, saw ${seen.join(', then ')}`)
}

/**
 * Posts an order again, as a caller would, for as long as it is told to come back (503, 504): what "the same key
 * succeeds later" means. Gives the first other answer.
 */
export function eventually(api: Client, key: string, request: SampleOrder): Promise<Answer> {
  return until('an answer other than 503 and 504', async () => {
    const answer = await api.order(key, request)
    return answer.status !== 503 && answer.status !== 504 && answer
  })
}
