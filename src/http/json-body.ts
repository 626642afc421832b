import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { ZodType } from 'zod'
import { type FieldError, Problem } from '../errors/index.ts'
import { hasRepeatedMembers } from '../runtime/index.ts'

/**
 * JSON bodies as strictly as RFC 8259 and RFC 7493 (I-JSON) have it: one type, one encoding, no content coding, no
 * member named twice.
 */

/** Refuses what announces itself as anything else. Throws `malformed-json` or `unsupported-media-type`. */
export function requireJson(headers: IncomingHttpHeaders): void {
  if (!hasBody(headers)) throw new Problem('malformed-json')
  const type = headers['content-type'] ?? ''
  const charset = CHARSET.exec(type)?.[1] ?? 'utf-8'
  const coding = headers['content-encoding'] ?? 'identity'
  if (JSON_TYPE.test(type) && /^utf-?8$/i.test(charset) && coding.toLowerCase() === 'identity') return
  throw new Problem('unsupported-media-type')
}

/** Whether a body comes with the request, if only one of length unknown. */
export function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** The body as `schema` has it. Throws `malformed-json` or `validation-failed`. */
export function parseBody<Output>(body: Buffer, schema: ZodType<Output>): Output {
  if (!isUtf8(body)) throw new Problem('malformed-json')
  const text = body.toString('utf8')
  const value = parseJson(text)
  const result = schema.safeParse(value)
  if (!result.success) throw new Problem('validation-failed', { errors: fieldErrors(result.error.issues) })
  // Validated, so no deeper than the schema is and safe to walk.
  if (hasRepeatedMembers(text, value)) throw new Problem('malformed-json')
  return result.data
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Problem('malformed-json')
  }
}

interface Issue {
  readonly code?: string
  readonly path: readonly PropertyKey[]
  readonly message: string
  readonly keys?: readonly string[]
}

/** What a schema objects to, as pointers below `base`. */
export function fieldErrors(issues: readonly Issue[], base: readonly string[] = []): FieldError[] {
  const errors: FieldError[] = []
  for (const issue of issues) {
    const names = issue.code === 'unrecognized_keys' && issue.keys ? issue.keys : [undefined]
    for (const name of names) {
      if (errors.length === MAX_FIELD_ERRORS) return errors
      const path = [...base, ...issue.path, ...(name === undefined ? [] : [name])]
      errors.push({
        pointer: jsonPointer(path),
        message: name === undefined ? issue.message : 'unknown field',
      })
    }
  }
  return errors
}

/** RFC 6901. */
function jsonPointer(path: readonly PropertyKey[]): string {
  const pointer = path.map(part => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
  return pointer.slice(0, MAX_POINTER_LENGTH)
}

const JSON_TYPE = /^application\/json\s*(;|$)/i
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i
// Enough to mend a body in one go; a hostile one must not make the answer long.
const MAX_FIELD_ERRORS = 20
const MAX_POINTER_LENGTH = 256
