export { type IdempotencyChannels, idempotencyChannels } from './channels.ts'
export { fingerprint } from './fingerprint.ts'
export { Ledger } from './ledger.ts'
