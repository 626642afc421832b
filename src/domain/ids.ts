import { v7, validate, version } from 'uuid'

/**
 * A new identifier: UUID version 7 (RFC 9562, section 5.7) of a moment, in milliseconds since the epoch, and 16
 * random bytes. Time-ordered, so that inserts append to the store's trees instead of scattering over them; made
 * before anything is written, so that no half-made order exists.
 */
export function newId(atMs: number, random: Uint8Array): string {
  return v7({ msecs: atMs, random })
}

/** True for text that could be an identifier of ours; anything else cannot exist. */
export function isId(text: string): boolean {
  return validate(text) && version(text) === 7
}
