import { expect, test } from 'vitest'
import type { Lookups } from '../../src/store/sqlite/lookups.ts'
import { sqliteOutbox } from '../../src/store/sqlite/sqlite-outbox.ts'

test('a claim whose events another process took before they were read is a claim of nothing', async () => {
  const lookups = { findEvents: async () => ({ kind: 'found', value: [] }) } as unknown as Lookups
  const outbox = sqliteOutbox({ run: async () => [7, 1, 3] }, lookups)
  expect(await outbox.claim({ limit: 3, leaseMs: 1_000, atMs: 0 })).toEqual({ kind: 'nothing' })
})
