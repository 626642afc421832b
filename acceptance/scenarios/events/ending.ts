import { rm } from 'node:fs/promises'
import type { CloudEvent } from '../../support/consumer.ts'
import { between, demand, same } from '../../support/expect.ts'
import { temporaryFolder } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { openStage, place, placeMany, revoke, settled } from './stage.ts'

const TAKEN_BEFORE_THE_KILL = 5
// No more than `outbox.maxConcurrent`, by default.
const CLAIMS_THAT_HANG = 60

/** A server that goes, by itself or not: what it held is delivered by the next one. */
export async function ending(trial: Trial): Promise<void> {
  await killed(trial)
  await drained(trial)
  await idle(trial)
}

async function killed(trial: Trial): Promise<void> {
  const folder = await ownFolder(trial)
  const outbox = { leaseMs: 1_000, webhook: { timeoutMs: 500 } }

  await trial.check(
    'kill -9 between delivery and settlement: delivered again, under the same ids',
    async () => {
      const first = await openStage(trial, { outbox, folder })
      const { consumer } = first
      await consumer.disappear()
      await placeMany(first, 30)
      const taken: CloudEvent[] = []
      consumer.react = event => {
        // The consumer has the event, and whoever brought it cannot know.
        if (taken.push(event) === TAKEN_BEFORE_THE_KILL) first.server.signal('SIGKILL')
        return { kind: 'accept' }
      }
      await consumer.reappear()
      same(await first.server.exit(), -1, 'the exit of a process that was killed')
      demand(taken.length >= TAKEN_BEFORE_THE_KILL, `some events taken, saw ${taken.length}`)
      const before = consumer.arrivals.length

      const second = await openStage(trial, { outbox, folder, before: first })
      consumer.react = () => ({ kind: 'accept' })
      const summary = await settled(second)
      const again = new Set(consumer.arrivals.slice(before).map(({ event }) => event.id))
      const repeats = taken.filter(({ id }) => again.has(id)).length
      demand(repeats > 0, 'some of what was taken to come again, saw none')
      await second.server.stop()
      return `${summary}, ${repeats} of ${taken.length} taken before came again`
    },
  )
}

async function drained(trial: Trial): Promise<void> {
  const folder = await ownFolder(trial)
  // A claim that is not handed back would hold its events up for a minute.
  const options = {
    folder,
    outbox: { leaseMs: 60_000, webhook: { timeoutMs: 30_000 } },
    config: { lifecycle: { unreadyDelayMs: 100 } },
  }

  const stage = await openStage(trial, options)
  const { consumer, server } = stage

  await trial.check('SIGTERM while deliveries hang: it exits with 0, in time', async () => {
    consumer.react = () => ({ kind: 'stall' })
    const { id } = await place(stage)
    await revoke(stage, id)
    // Each announced before the next is made, so that each has a claim of its own, and all go back at once.
    for (let claims = 1; claims < CLAIMS_THAT_HANG; claims++) {
      await consumer.arrived(claims)
      await place(stage)
    }
    await consumer.arrived(CLAIMS_THAT_HANG)
    const startedMs = performance.now()
    same(await server.stop(), 0, 'the exit code')
    // The hanging deliveries have two seconds to end.
    between(performance.now() - startedMs, 100, 3_500, 'the time to the exit, in ms,')
    for (const line of server.lines) JSON.parse(line)
    return `${consumer.arrivals.length} deliveries were hanging`
  })

  await trial.check(
    'what it handed back is delivered after the restart, before its lease would be over',
    async () => {
      consumer.react = () => ({ kind: 'accept' })
      const next = await openStage(trial, { ...options, before: stage })
      return settled(next, 2_000)
    },
  )
}

async function idle(trial: Trial): Promise<void> {
  await trial.check('SIGTERM while nothing is delivered: it does not wait for anything', async () => {
    const stage = await openStage(trial, { config: { lifecycle: { unreadyDelayMs: 100 } } })
    await placeMany(stage, 4)
    const summary = await settled(stage)
    const startedMs = performance.now()
    same(await stage.server.stop(), 0, 'the exit code')
    between(performance.now() - startedMs, 100, 1_500, 'the time to the exit, in ms,')
    return summary
  })
}

async function ownFolder(trial: Trial): Promise<string> {
  const folder = await temporaryFolder()
  trial.own(() => rm(folder, { recursive: true }))
  return folder
}
