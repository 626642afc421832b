import { Consumer, type Reaction } from '../../support/consumer.ts'
import { between, demand, same } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'
import { openStage, place, placeMany, revoke, type Stage, settled } from './stage.ts'

const ACCEPT: Reaction = { kind: 'accept' }
const OUTBOX = { leaseMs: 2_000, webhook: { timeoutMs: 300 } }

/** What a consumer can do wrong for a while. */
const TROUBLES: Record<string, Reaction> = {
  'answers 500': { kind: 'say', status: 500 },
  'answers 503': { kind: 'say', status: 503 },
  'answers 400': { kind: 'say', status: 400 },
  'answers 404': { kind: 'say', status: 404 },
  'answers 429 without saying when': { kind: 'say', status: 429 },
  'takes the request and never answers': { kind: 'stall' },
  'begins an answer and never ends it': { kind: 'trickle' },
  'resets the connection': { kind: 'reset' },
  'begins an answer and breaks it off': { kind: 'truncate' },
}

/** A consumer in trouble gets what it is owed once it is well: exactly that, each order's in order. */
export async function trouble(trial: Trial): Promise<void> {
  for (const theme of [faults, redirects, asksForTime, absence, storm]) {
    await theme(await openStage(trial, { outbox: OUTBOX }))
  }
  await slow(trial)
}

async function faults(stage: Stage): Promise<void> {
  for (const [what, reaction] of Object.entries(TROUBLES)) {
    const sentence = `a consumer that ${what} has every event once it is well`
    await stage.trial.check(sentence, () => recovers(stage, reaction))
  }
}

async function recovers(stage: Stage, reaction: Reaction): Promise<string> {
  const { consumer } = stage
  const before = consumer.taken.size
  consumer.react = () => reaction
  await placeMany(stage, 6)
  // Tried, and tried again.
  const again = () => consumer.arrivals.some(({ event }) => consumer.arrivalsOf(event.id).length >= 2)
  await until('some event to come again', again)
  const { length } = consumer.arrivals
  await consumer.arrived(length + 2)
  same(consumer.taken.size, before, 'the orders of which an event was taken')
  consumer.react = () => ACCEPT
  return settled(stage)
}

async function redirects(stage: Stage): Promise<void> {
  const decoy = await Consumer.listen()
  stage.trial.own(() => decoy.close())
  for (const status of [301, 302, 303, 307, 308]) {
    await stage.trial.check(
      `a redirect with ${status} is a failure, and its target is never called`,
      async () => {
        const summary = await recovers(stage, { kind: 'say', status, headers: { location: decoy.url } })
        same(decoy.arrivals.length + decoy.faults.length, 0, 'the calls to the target')
        return summary
      },
    )
  }
}

async function asksForTime(stage: Stage): Promise<void> {
  const { trial, consumer } = stage
  const ways: Record<string, () => Reaction> = {
    '429 with Retry-After in seconds': () => ({ kind: 'say', status: 429, headers: { 'retry-after': '1' } }),
    '503 with Retry-After in seconds': () => ({ kind: 'say', status: 503, headers: { 'retry-after': '1' } }),
    // A date has no fractions of a second: this is one second from now at the earliest.
    '429 with Retry-After as a date': () => {
      const retryAfter = new Date(Date.now() + 2_000).toUTCString()
      return { kind: 'say', status: 429, headers: { 'retry-after': retryAfter } }
    },
  }
  for (const [what, reaction] of Object.entries(ways)) {
    await trial.check(`${what} is honoured, while others go on`, async () => {
      consumer.react = ({ data }, nth) => (data.reference === 'later' && nth === 1 ? reaction() : ACCEPT)
      const { id } = await place(stage, 'later')
      await until('its first delivery', () => consumer.arrivals.some(({ event }) => event.subject === id))
      await consumer.took((await place(stage)).id, 'order.created', 500)
      same(consumer.typesOf(id).length, 0, 'the events taken of the one that asked for time')
      const event = await consumer.took(id, 'order.created', 3_000)
      const [first, second, ...more] = consumer.arrivalsOf(event.id)
      same(more.length, 0, 'the deliveries after the second')
      const gapMs = Number(second?.atMs) - Number(first?.atMs)
      // The wall clock, which is rounded to the millisecond at both ends, decides.
      between(gapMs, 998, what.includes('date') ? 2_500 : 1_500, 'the time to the second delivery, in ms,')
      return `${Math.round(gapMs)} ms`
    })
  }
}

async function absence(stage: Stage): Promise<void> {
  const { trial, consumer } = stage

  await trial.check('a consumer that was away has every event once it is back', async () => {
    for (let round = 0; round < 2; round++) {
      await consumer.disappear()
      const before = await failed(stage)
      await placeMany(stage, 12)
      await until('some delivery to fail', async () => (await failed(stage)) >= before + 3)
      await consumer.reappear()
      await settled(stage)
    }
    return settled(stage)
  })
}

async function storm(stage: Stage): Promise<void> {
  const { trial, consumer } = stage
  const troubles = Object.values(TROUBLES)

  await trial.check(
    'through every trouble at once, while orders come in, nothing is lost or out of order',
    async () => {
      let turn = 0
      // Each event's deliveries meet other troubles than its neighbour's, and every third is taken.
      consumer.react = (_event, nth) => {
        turn++
        return nth % 3 === 0 ? ACCEPT : (troubles[(turn + nth) % troubles.length] as Reaction)
      }
      let over = false
      const orders = placeMany(stage, 120).finally(() => {
        over = true
      })
      const comingAndGoing = async () => {
        while (!over) {
          const { length } = consumer.arrivals
          await until('deliveries or the end', () => over || consumer.arrivals.length > length + 20, 10_000)
          await consumer.disappear()
          const before = await failed(stage)
          await until('a delivery to nobody', async () => over || (await failed(stage)) > before)
          await consumer.reappear()
        }
      }
      await Promise.all([orders, comingAndGoing()])
      const before = consumer.arrivals.length
      await settled(stage, 20_000)
      consumer.react = () => ACCEPT
      const summary = await settled(stage)
      demand(turn > 180, `more deliveries than events, saw ${turn}`)
      return `${summary}, of which ${consumer.arrivals.length - before} after the last order`
    },
  )
}

async function slow(trial: Trial): Promise<void> {
  await trial.check('a consumer so slow that claims run out has every event, in order', async () => {
    const outbox = { leaseMs: 500, maxConcurrent: 2, webhook: { timeoutMs: 250 } }
    const stage = await openStage(trial, { outbox })
    await stage.consumer.disappear()
    await placeMany(stage, 40)
    stage.consumer.react = () => ({ kind: 'accept', delayMs: 40 })
    await stage.consumer.reappear()
    return settled(stage, 15_000)
  })

  await trial.check(
    'an event that is being delivered is not overtaken by the next of its order',
    async () => {
      const stage = await openStage(trial, { outbox: { webhook: { timeoutMs: 1_000 } } })
      const { consumer } = stage
      consumer.react = () => ({ kind: 'accept', delayMs: 400 })
      const { id } = await place(stage)
      await consumer.arrived(1)
      await revoke(stage, id)
      await consumer.took(id, 'order.cancelled')
      const types = consumer.arrivals.map(({ event }) => event.type).join()
      same(types, 'order.created,order.cancelled', 'the deliveries')
      return settled(stage)
    },
  )
}

async function failed({ admin }: Stage): Promise<number> {
  return (await Metrics.read(admin)).sum('punctual_outbox_failed_total')
}
