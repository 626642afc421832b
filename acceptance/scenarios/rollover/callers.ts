import { createHash } from 'node:crypto'
import type { Answer } from '../../support/answer.ts'
import { Client } from '../../support/client.ts'
import { freshKey, type SampleOrder, sampleOrder } from '../../support/samples.ts'
import type { Trial } from '../../support/trial.ts'

// Each meets one instance, by a hash of its credential: so many that neither instance is left without.
const COUNT = 32
// Of the bundled pricing service.
const SKUS = 100

const TOKENS = Array.from({ length: COUNT }, (_, index) => `acceptance-caller-${index}`)

/** `auth.keys` of the configuration: every caller is a tenant of its own. */
export const CALLER_ENTRIES = TOKENS.map((token, index) => ({
  id: `caller-${index}`,
  tenant: `tenant-${index}`,
  sha256: createHash('sha256').update(token).digest('hex'),
  scopes: ['orders:read', 'orders:write'],
  view: 'full',
}))

/** A client for each caller, with connections of its own that are kept. */
export function callersOf(trial: Trial, port: number): readonly Client[] {
  return TOKENS.map(token => {
    const client = new Client(port, token, () => {})
    trial.own(() => client.close())
    return client
  })
}

/** One order that a caller has sent, and its answer; an error when the connection ended without one. */
export interface Posted {
  readonly caller: number
  readonly key: string
  readonly request: SampleOrder
  readonly answer: Answer | Error
}

/** Posts the order of this number, by whoever's turn it is. */
export async function post(callers: readonly Client[], serial: number): Promise<Posted> {
  const caller = serial % callers.length
  const key = freshKey()
  const request = sampleOrder({ items: [{ sku: `SKU-${1 + (serial % SKUS)}`, quantity: 1 }] })
  const answer = await (callers[caller] as Client).order(key, request).catch((error: Error) => error)
  return { caller, key, request, answer }
}
