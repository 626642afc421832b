import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { Lookups } from '../../src/store/sqlite/lookups.ts'
import { FINDING } from '../../src/store/sqlite/protocol.ts'
import { VirtualClock } from '../support/virtual-clock.ts'
import { FakeThreads } from './fake-threads.ts'

const SCOPE = { tenant: 'tenant-1', operation: 'orders.create', key: 'k' } as const

async function setUp({ maxPending = 8 } = {}) {
  const clock = new VirtualClock()
  const threads = new FakeThreads()
  const lookups = new Lookups({
    clock,
    maxBatch: 8,
    maxPending,
    start: threads.start,
    onHealth: () => {},
    onTrouble: () => {},
  })
  const opening = lookups.thread.open()
  threads.say({ kind: 'ready' })
  await opening
  const controller = new AbortController()
  return { clock, threads, lookups, controller, signal: controller.signal }
}

describe('look-ups', () => {
  it('tells apart what one batch found, missed and failed to see', async () => {
    const { clock, threads, lookups, signal } = await setUp()
    const page = { limit: 5, before: undefined }
    const asked = [
      lookups.findOrders('tenant-1', 'c', page, signal),
      lookups.findOrder('tenant-1', 'a', signal),
      lookups.findOrders('tenant-1', 'd', page, signal),
      lookups.findReply(SCOPE, signal),
      lookups.findOrder('tenant-1', 'b', signal),
      lookups.findReply(SCOPE, signal),
    ]
    clock.turn()
    expect(threads.requests).toHaveLength(1)
    const { found, absent, failed } = FINDING
    const reply = ['0'.repeat(64), 201, '/v1/orders/a', 1, '{"a":1}']
    const list = ['z', 1, '"z"', 'y', 2, '"y"']
    threads.answer([found, 6, ...list, found, 2, 2, '{}', found, 0, found, 5, ...reply, absent, failed])
    expect(await Promise.all(asked)).toEqual([
      {
        kind: 'found',
        value: [
          { id: 'z', version: 1, json: '"z"' },
          { id: 'y', version: 2, json: '"y"' },
        ],
      },
      { kind: 'found', value: { version: 2, json: '{}' } },
      { kind: 'found', value: [] },
      {
        kind: 'found',
        value: {
          fingerprint: '0'.repeat(64),
          status: 201,
          location: '/v1/orders/a',
          version: 1,
          json: '{"a":1}',
        },
      },
      { kind: 'absent' },
      { kind: 'unavailable' },
    ])
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('lets a caller go at once, asked already or not, and drops the answer', async () => {
    const { clock, threads, lookups, controller, signal } = await setUp()
    const sent = lookups.findOrder('tenant-1', 'a', signal)
    const other = lookups.findOrder('tenant-1', 'b', new AbortController().signal)
    clock.turn()
    const queued = lookups.findOrder('tenant-1', 'c', signal)
    controller.abort()
    expect([await sent, await queued]).toEqual([{ kind: 'withdrawn' }, { kind: 'withdrawn' }])
    threads.answer([FINDING.found, 2, 1, '{"a":1}', FINDING.found, 2, 3, '{"b":1}'])
    expect(await other).toEqual({ kind: 'found', value: { version: 3, json: '{"b":1}' } })
    expect(threads.requests).toEqual([])
    expect(await lookups.findOrder('tenant-1', 'c', signal)).toEqual({ kind: 'withdrawn' })
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('is unavailable without room and without a reader', async () => {
    const { clock, threads, lookups, signal } = await setUp({ maxPending: 1 })
    const sent = lookups.findOrder('tenant-1', 'a', signal)
    expect(await lookups.findOrder('tenant-1', 'b', signal)).toEqual({ kind: 'unavailable' })
    clock.turn()
    const queued = lookups.findOrder('tenant-1', 'c', signal)
    threads.exit()
    expect([await sent, await queued]).toEqual([{ kind: 'unavailable' }, { kind: 'unavailable' }])
    expect(await lookups.findReply(SCOPE, signal)).toEqual({ kind: 'unavailable' })
    expect(lookups.thread.fault).toBe('down')
    await clock.advanceAsync(50)
    threads.say({ kind: 'ready' })
    expect(lookups.thread.fault).toBeUndefined()
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})
