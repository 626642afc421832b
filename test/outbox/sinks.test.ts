import { expect, test } from 'vitest'
import { openSink } from '../../src/outbox/index.ts'
import { outboxOptions } from '../../src/outbox/options.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { sinkContract } from '../contracts/sink.contract.ts'
import { never } from '../support/order-write.ts'
import { consumer, SECRET, someEvent } from './consumer.ts'

function opened(choices: object) {
  const lines: object[] = []
  const sink = openSink(outboxOptions.parse(choices), {
    clock: systemClock,
    writeLine: line => lines.push(line),
  })
  return { sink, lines }
}

sinkContract('log', () => {
  const { sink, lines } = opened({ sink: 'log' })
  return { sink, announced: () => lines.map(line => (line as { id: string }).id), dispose: sink.close }
})

sinkContract('none', () => {
  const { sink } = opened({ sink: 'none' })
  return { sink, announced: () => undefined, dispose: sink.close }
})

sinkContract('webhook', async () => {
  const { url, posts } = await consumer()
  const webhook = { url, secret: SECRET, allowPrivateNetworks: true, timeoutMs: 60_000 }
  const { sink } = opened({ sink: 'webhook', webhook })
  return {
    sink,
    announced: () => posts.map(({ body }) => (JSON.parse(body) as { id: string }).id),
    dispose: sink.close,
  }
})

test('a line of the log says what happened to which order, and nothing of what it holds', async () => {
  const { sink, lines } = opened({ sink: 'log' })
  const event = someEvent()
  await sink.deliver(event, never())
  const { id, type, subject, tenant, traceparent } = event
  expect(lines).toEqual([{ id, type, subject, tenant, traceparent, time: '2026-01-01T12:00:00.005Z' }])
})
