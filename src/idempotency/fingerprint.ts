import { hash } from 'node:crypto'
import canonicalize from 'canonicalize'

/**
 * What makes two requests the same: SHA-256 (hex) of the RFC 8785 form of the validated request. Field order and
 * white space do not matter; anything that validation would drop or change has been dealt with before.
 */
export function fingerprint(request: object): string {
  const canonical = canonicalize(request)
  if (canonical === undefined) throw new TypeError('a request without a canonical form was validated')
  return hash('sha256', canonical, 'hex')
}
