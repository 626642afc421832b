import { createHash } from 'node:crypto'

/** The API keys that every server of the acceptance knows, by what they may do. */
export const KEYS = {
  /** Tenant one, everything. */
  full: 'acceptance-full',
  /** Tenant one, everything, but personal fields read `***`. */
  masked: 'acceptance-masked',
  /** Tenant one, may only read. */
  reader: 'acceptance-reader',
  /** Tenant one, may only write. */
  writer: 'acceptance-writer',
  /** Tenant two, everything. */
  stranger: 'acceptance-stranger',
} as const

const BOTH = ['orders:read', 'orders:write']

/** `auth.keys` of the configuration. */
export const KEY_ENTRIES = [
  entry('full', 'one', BOTH),
  entry('masked', 'one', BOTH, 'masked'),
  entry('reader', 'one', ['orders:read']),
  entry('writer', 'one', ['orders:write']),
  entry('stranger', 'two', BOTH),
]

function entry(id: keyof typeof KEYS, tenant: string, scopes: readonly string[], view = 'full') {
  return { id, tenant, sha256: createHash('sha256').update(KEYS[id]).digest('hex'), scopes, view }
}
