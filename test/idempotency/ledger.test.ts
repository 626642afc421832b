import { describe, expect, test } from 'vitest'
import { idempotencyChannels, Ledger } from '../../src/idempotency/index.ts'
import type { KeyScope, OrderWrite } from '../../src/store/index.ts'
import { MemoryStore } from '../support/memory-store.ts'

const SCOPE: KeyScope = { tenant: 'acme', operation: 'orders.create', key: 'k' }
const WRITE: OrderWrite = {
  ...SCOPE,
  fingerprint: 'f1',
  order: { id: 'o1', customerId: 'c', status: 'accepted', version: 1, json: '{"id":"o1"}' },
  event: { id: 'e1', type: 'order.created', traceparent: '' },
  reply: { status: 201, location: '/v1/orders/o1' },
  atMs: 0,
}
const REPLY = { fingerprint: 'f1', status: 201, location: '/v1/orders/o1', version: 1, json: '{"id":"o1"}' }
const { signal } = new AbortController()

async function ledgerOf(writes: OrderWrite[]) {
  const store = new MemoryStore()
  for (const write of writes) await store.commit(write, signal)
  const channels = idempotencyChannels()
  const decided: string[] = []
  channels.decided.subscribe(({ result }) => decided.push(result))
  return { store, ledger: new Ledger(store, channels), decided }
}

describe('the ledger', () => {
  test('recalls the first answer to the same request', async () => {
    const { ledger, decided } = await ledgerOf([WRITE])
    expect(await ledger.recall(SCOPE, 'f1', signal)).toEqual(REPLY)
    expect(decided).toEqual(['replay'])
  })

  test('refuses another request under the same key', async () => {
    const { ledger, decided } = await ledgerOf([WRITE])
    await expect(ledger.recall(SCOPE, 'f2', signal)).rejects.toMatchObject({
      code: 'idempotency-conflict',
      status: 409,
      extensions: {},
    })
    expect(decided).toEqual(['conflict'])
  })

  test('knows nothing of a key of another tenant', async () => {
    const { ledger, decided } = await ledgerOf([WRITE])
    expect(await ledger.recall({ ...SCOPE, tenant: 'other' }, 'f1', signal)).toBeUndefined()
    expect(decided).toEqual([])
  })

  test.each(['absent', 'unavailable', 'withdrawn'] as const)(
    'does not decide anything when the look-up is %s',
    async kind => {
      const { store, ledger, decided } = await ledgerOf([WRITE])
      store.onLookup = () => ({ kind })
      expect(await ledger.recall(SCOPE, 'f2', signal)).toBeUndefined()
      expect(decided).toEqual([])
    },
  )

  test('judges what the store found taken as it judges what it recalls', async () => {
    const { ledger, decided } = await ledgerOf([])
    expect(ledger.judge(REPLY, 'f1')).toBe(REPLY)
    expect(() => ledger.judge(REPLY, 'f2')).toThrow('idempotency-conflict')
    ledger.created()
    expect(decided).toEqual(['replay', 'conflict', 'new'])
  })
})
