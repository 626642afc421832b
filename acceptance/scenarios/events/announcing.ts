import type { Arrival } from '../../support/consumer.ts'
import {
  cancelled,
  created,
  demand,
  matches,
  type OrderBody,
  orderOf,
  problem,
  same,
} from '../../support/expect.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'
import type { Trial } from '../../support/trial.ts'
import { openStage, place, revoke, type Stage, settled } from './stage.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const ATTRIBUTES = 'data,datacontenttype,id,source,specversion,subject,tenant,time,traceparent,type'

/** What is announced, to a consumer that takes everything: each change of an order once, and nothing else. */
export async function announcing(trial: Trial): Promise<void> {
  const stage = await openStage(trial)
  await contents(stage)
  await silence(stage)
  await others(stage)
  await wakes(trial)
}

async function contents(stage: Stage): Promise<void> {
  const { trial, api, consumer, owed } = stage
  let order: OrderBody | undefined

  await trial.check('an order is announced with everything that the contract says of it', async () => {
    const traceparent = `00-${TRACE_ID}-00f067aa0ba902b7-01`
    const request = sampleOrder({ reference: 'Für Zoë, 東京' })
    order = created(await api.order(freshKey(), request, { traceparent }))
    owed.set(order.id, ['order.created'])
    await consumer.took(order.id)
    const arrival = consumer.arrivals.at(-1) as Arrival
    announced(arrival, order, 'order.created')
    matches(
      String(arrival.event.traceparent),
      new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-0[01]$`),
      'traceparent',
    )
    return `${arrival.body.length} characters, ${arrival.headers['webhook-signature']}`
  })

  await trial.check('its cancellation is announced behind it, under an id of its own', async () => {
    const { id } = order as OrderBody
    const gone = await revoke(stage, id)
    await consumer.took(id, 'order.cancelled')
    announced(consumer.arrivals.at(-1) as Arrival, gone, 'order.cancelled')
    const ids = consumer.taken.get(id)?.map(event => event.id) ?? []
    same(new Set(ids).size, 2, 'the ids of two events')
    same(consumer.typesOf(id).join(), 'order.created,order.cancelled', 'the order of the events')
  })

  await trial.check(
    'an order without a trace of its caller is announced with the trace of its answer',
    async () => {
      const answer = await api.order(freshKey(), sampleOrder())
      const { id } = created(answer)
      owed.set(id, ['order.created'])
      const { traceparent } = await consumer.took(id)
      same(String(traceparent).split('-')[1], answer.headers['x-trace-id'], 'the trace of the event')
    },
  )
}

/** Everything of the contract, but for the trace. */
function announced({ event, headers, body }: Arrival, order: OrderBody, type: string): void {
  same(headers['content-type'], 'application/cloudevents+json; charset=utf-8', 'Content-Type')
  same(headers['content-length'], String(Buffer.byteLength(body)), 'Content-Length')
  matches(headers['webhook-timestamp'] as string, /^\d{10}$/, 'webhook-timestamp')
  matches(headers['webhook-signature'] as string, /^v1,[A-Za-z0-9+/]{43}=$/, 'webhook-signature')
  same(headers['webhook-id'], event.id, 'webhook-id')
  same(Object.keys(event).sort().join(), ATTRIBUTES, 'the attributes')
  matches(event.id, UUID_V7, 'a UUIDv7')
  demand(event.id !== order.id, 'an id that is not that of the order')
  const expected = {
    specversion: '1.0',
    source: '/punctual/orders',
    type,
    subject: order.id,
    datacontenttype: 'application/json',
    tenant: 'one',
    time: order.updatedAt,
  }
  for (const [name, value] of Object.entries(expected)) same(event[name], value, name)
  same(JSON.stringify(event.data), JSON.stringify(order), 'data')
}

async function silence(stage: Stage): Promise<void> {
  const { trial, api, as, nobody, consumer, owed } = stage

  await trial.check('replays announce nothing, of orders and of cancellations', async () => {
    const [key, cancelKey, request] = [freshKey(), freshKey(), sampleOrder()]
    const { id } = created(await api.order(key, request))
    created(await api.order(key, request), true)
    cancelled(await api.cancel(cancelKey, id))
    cancelled(await api.cancel(cancelKey, id), true)
    created(await api.order(key, request), true)
    owed.set(id, ['order.created', 'order.cancelled'])
    return settled(stage)
  })

  await trial.check('refused requests announce nothing', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    const { id } = created(await api.order(key, request))
    owed.set(id, ['order.created'])
    problem(await api.order(key, sampleOrder()), 409, 'idempotency-conflict')
    problem(await api.order(freshKey(), { ...request, currency: 'euro' }), 400, 'validation-failed')
    const unknown = sampleOrder({ items: [{ sku: `NONE-${freshKey()}`, quantity: 1 }] })
    problem(await api.order(freshKey(), unknown), 400, 'unknown-sku')
    problem(await nobody.order(freshKey(), request), 401, 'unauthenticated')
    problem(await as.reader.order(freshKey(), request), 403, 'forbidden')
    problem(await as.stranger.cancel(freshKey(), id), 404, 'not-found')
    problem(await as.reader.cancel(freshKey(), id), 403, 'forbidden')
    await revoke(stage, id)
    problem(await api.cancel(freshKey(), id), 409, 'order-state-conflict')
    return settled(stage)
  })

  await trial.check('fifty requests with one key are announced once', async () => {
    const [key, request] = [freshKey(), sampleOrder()]
    const answers = await Promise.all(Array.from({ length: 50 }, () => api.order(key, request)))
    const made = answers.filter(({ status }) => status === 201)
    demand(made.length > 0, 'some 201, saw none')
    owed.set(orderOf(made[0] as (typeof made)[0]).id, ['order.created'])
    return settled(stage)
  })

  await trial.check('to a consumer that takes everything each event is delivered once', async () => {
    await settled(stage)
    const repeats = consumer.arrivals.length - new Set(consumer.arrivals.map(({ event }) => event.id)).size
    same(repeats, 0, 'the repeats')
    return `${consumer.arrivals.length} deliveries`
  })
}

async function others(stage: Stage): Promise<void> {
  const { trial, as, consumer, owed } = stage

  await trial.check('the order of a masked key is announced whole', async () => {
    const request = sampleOrder({ reference: 'the whole reference' })
    const answer = await as.masked.order(freshKey(), request)
    const { id, customerId } = created(answer)
    owed.set(id, ['order.created'])
    same(customerId, '***', 'what the key itself reads')
    const { data } = await consumer.took(id)
    same((data as Partial<OrderBody>).customerId, request.customerId, 'customerId')
    same(data.reference, request.reference, 'reference')
    cancelled(await as.masked.cancel(freshKey(), id))
    owed.get(id)?.push('order.cancelled')
    const gone = await consumer.took(id, 'order.cancelled')
    same((gone.data as Partial<OrderBody>).customerId, request.customerId, 'customerId when it is cancelled')
  })

  await trial.check("another tenant's order is announced as that tenant's", async () => {
    const { id } = created(await as.stranger.order(freshKey(), sampleOrder()))
    owed.set(id, ['order.created'])
    same((await consumer.took(id)).tenant, 'two', 'tenant')
  })

  await trial.check('any 2xx is a delivery', async () => {
    const before = consumer.arrivals.length
    for (const status of [200, 201, 202, 204, 299]) {
      consumer.react = () => ({ kind: 'accept', status })
      await consumer.took((await place(stage)).id)
    }
    same(consumer.arrivals.length - before, 5, 'the deliveries of five events')
    return settled(stage)
  })
}

async function wakes(trial: Trial): Promise<void> {
  await trial.check('a commit is announced at once, not at the next poll', async () => {
    const stage = await openStage(trial, {
      config: { capacity: { targetRps: 15 } },
      outbox: { pollIntervalMs: 60_000, batchSize: 2_000 },
    })
    for (let turn = 0; turn < 5; turn++) {
      const { id } = await place(stage)
      await stage.consumer.took(id, 'order.created', 500)
      await revoke(stage, id)
      await stage.consumer.took(id, 'order.cancelled', 500)
    }
    return settled(stage)
  })
}
