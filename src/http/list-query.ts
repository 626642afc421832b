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

/** What to list. Throws `validation-failed`. */
export function listQuery(url: string): ListInput {
  const mark = url.indexOf('?')
  const parameters = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
  const repeated = [...new Set(parameters.keys())].filter(name => parameters.getAll(name).length > 1)
  if (repeated.length > 0) {
    const errors = repeated.map(name => ({ code: 'custom', path: [name], message: 'stands more than once' }))
    throw new Problem('validation-failed', { errors: fieldErrors(errors, ['query']) })
  }
  const result = listQuerySchema.safeParse(Object.fromEntries(parameters))
  if (!result.success) {
    throw new Problem('validation-failed', { errors: fieldErrors(result.error.issues, ['query']) })
  }
  const { customerId, idempotencyKey, limit, cursor } = result.data
  return { customerId, idempotencyKey, limit, before: cursor }
}

function invalid(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message })
  return z.NEVER
}
