import type { IncomingMessage } from 'node:http'
import { Problem } from '../errors/index.ts'

const PRINTABLE = /^[\x20-\x7e]{1,255}$/
// A structured-field string (RFC 9651, section 3.3.3): printable ASCII, with `"` and `\` escaped.
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/

/**
 * The caller's idempotency key, quoted as a structured field or bare; both forms are the same key.
 *
 * Throws `idempotency-key-missing` or `idempotency-key-invalid`.
 */
export function idempotencyKey(req: IncomingMessage): string {
  const header = req.headers['idempotency-key']
  if (header === undefined) throw new Problem('idempotency-key-missing')
  // Two header lines arrive joined by a comma, which one bare key may contain as well.
  if (
    Array.isArray(header) ||
    (header.includes(', ') && req.headersDistinct['idempotency-key']?.length !== 1)
  ) {
    throw new Problem('idempotency-key-invalid')
  }
  const key = readKey(header)
  if (key === undefined) throw new Problem('idempotency-key-invalid')
  return key
}

/** The key that `text` stands for, quoted or bare; undefined when it is none. */
export function readKey(text: string): string | undefined {
  const key = text.startsWith('"') ? QUOTED.exec(text)?.[1]?.replace(/\\(["\\])/g, '$1') : text
  return key !== undefined && PRINTABLE.test(key) ? key : undefined
}
