import { expect, test } from 'vitest'
import { openSink } from '../../src/outbox/index.ts'
import { outboxOptions } from '../../src/outbox/options.ts'
import { systemClock } from '../../src/runtime/index.ts'
import { sinkContract } from '../contracts/sink.contract.ts'
import { never } from '../support/order-write.ts'
import { consumer, SECRET, someEvent } from './consumer.ts'

function opened(choices: object, room = Number.POSITIVE_INFINITY) {
  const lines: object[] = []
  const sink = openSink(outboxOptions.parse(choices), {
    clock: systemClock,
    writeLine: async line => {
      lines.push(line)
      return lines.length <= room
    },
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

test('a line that could not be written is no delivery', async () => {
  const { sink } = opened({ sink: 'log' }, 1)
  expect(await sink.deliver(someEvent(), never())).toEqual({ kind: 'delivered' })
  expect(await sink.deliver(someEvent(), never())).toEqual({
    kind: 'failed',
    reason: 'the log takes no more lines',
  })
})
