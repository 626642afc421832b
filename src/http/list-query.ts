import { z } from 'zod'
import { orderRequestSchema } from '../domain/index.ts'
import { Problem } from '../errors/index.ts'
import { idOfCursor, type ListInput } from '../orders/index.ts'
import { readKey } from './idempotency-key.ts'
import { fieldErrors } from './json-body.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** The query of `GET /v1/orders`; as strict as bodies are, so that a misspelt filter does not list something else. */
const listQuerySchema = z
  .strictObject({
    customerId: orderRequestSchema.shape.customerId.optional(),
    idempotencyKey: z
      .string()
      .transform((text, context) => readKey(text) ?? invalid(context, 'not an idempotency key'))
      .optional(),
    limit: z
      .string()
      .regex(/^[1-9][0-9]{0,2}$/)
      .transform(Number)
      .refine(limit => limit <= MAX_LIMIT, `must be 1 to ${MAX_LIMIT}`)
      .default(DEFAULT_LIMIT),
    cursor: z
      .string()
      .transform((text, context) => idOfCursor(text) ?? invalid(context, 'not a cursor of this list'))
      .optional(),
  })
  .refine(query => query.customerId !== undefined || query.idempotencyKey !== undefined, {
    path: ['customerId'],
    message: 'customerId or idempotencyKey is needed',
  })

// Twice as many as there are, so that several mistakes are told at once.
const MAX_PARAMETERS = 8

/** What to list. Throws `validation-failed`. */
export function listQuery(url: string): ListInput {
  const mark = url.indexOf('?')
  const text = mark < 0 ? '' : url.slice(mark + 1)
  const parameters = new Map<string, string>()
  const repeated: string[] = []
  // A second `?` belongs to the first name; URLSearchParams would drop it.
  for (const [name, value] of new URLSearchParams(text.startsWith('?') ? text.replace('?', '%3F') : text)) {
    // A long query must not cost more than it takes to read it.
    if (parameters.size + repeated.length === MAX_PARAMETERS) throw refused([name], 'one parameter too many')
    if (parameters.has(name)) repeated.push(name)
    parameters.set(name, value)
  }
  if (repeated.length > 0) throw refused(repeated, 'stands more than once')
  const result = listQuerySchema.safeParse(Object.fromEntries(parameters))
  if (!result.success) {
    throw new Problem('validation-failed', { errors: fieldErrors(result.error.issues, ['query']) })
  }
  const { customerId, idempotencyKey, limit, cursor } = result.data
  return { customerId, idempotencyKey, limit, before: cursor }
}

function refused(names: readonly string[], message: string): Problem {
  const issues = names.map(name => ({ code: 'custom', path: [name], message }))
  return new Problem('validation-failed', { errors: fieldErrors(issues, ['query']) })
}

function invalid(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message })
  return z.NEVER
}
