import { hash } from 'node:crypto'
import type { View } from '../domain/index.ts'
import { Problem } from '../errors/index.ts'
import type { ApiKey, Scope } from './options.ts'

/** Who is calling, as far as an API key tells. */
export interface Principal {
  readonly tenant: string
  readonly scopes: ReadonlySet<Scope>
  readonly view: View
}

/**
 * API keys by their digest. Only digests are kept, and looking one up by the digest of what was sent compares
 * nothing that a caller could steer byte by byte, so it needs no constant-time comparison.
 */
export class ApiKeys {
  readonly #principals: ReadonlyMap<string, Principal>

  constructor(keys: readonly ApiKey[]) {
    this.#principals = new Map(
      keys.map(({ tenant, sha256, scopes, view }) => [sha256, { tenant, scopes: new Set(scopes), view }]),
    )
  }

  /** Throws `unauthenticated` or `forbidden`. */
  authorise(authorization: string | undefined, scope: Scope): Principal {
    const token = authorization === undefined ? null : BEARER.exec(authorization)
    const principal = token?.[1] && this.#principals.get(hash('sha256', token[1], 'hex'))
    if (!principal)
      throw new Problem('unauthenticated', {}, { 'WWW-Authenticate': 'Bearer realm="punctual"' })
    if (!principal.scopes.has(scope)) throw new Problem('forbidden')
    return principal
  }
}

// RFC 6750, section 2.1; the scheme's case does not matter (RFC 9110, section 11.1).
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i
