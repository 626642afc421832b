import { v7, validate, version } from 'uuid'

/**
 * A new identifier: UUID version 7 (RFC 9562, section 5.7). Time-ordered, so that inserts append to the store's
 * trees instead of scattering over them; made before anything is written, so that no half-made order exists.
 */
export function newId(): string {
  return v7()
}

/** True for text that could be an identifier of ours; anything else cannot exist. */
export function isId(text: string): boolean {
  return validate(text) && version(text) === 7
}
