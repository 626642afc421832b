import { z } from 'zod'
import type { OptionMeta } from '../runtime/index.ts'
import { configSchema } from './schema.ts'

/** One key of the configuration, with everything its schema says of it. */
export interface OptionEntry {
  readonly path: readonly string[]
  readonly meta: OptionMeta
  readonly schema: z.core.$ZodType
}

type Shape = Readonly<Record<string, z.core.$ZodType>>

/** Every key, in the order in which the folders declare them. */
export function listOptions(
  schema: z.core.$ZodType = configSchema,
  path: readonly string[] = [],
): OptionEntry[] {
  const shape = shapeOf(schema)
  if (shape === undefined || (path.length > 0 && metaOf(schema)?.is))
    return [{ path, meta: metaOf(schema) as OptionMeta, schema }]
  return Object.entries(shape).flatMap(([key, inner]) => listOptions(inner, [...path, key]))
}

/** The configuration with every secret hidden, fit for a log, a terminal or the admin listener. */
export function redact(value: unknown, schema: z.core.$ZodType = configSchema): unknown {
  if (metaOf(schema)?.secret) return value === undefined ? undefined : HIDDEN
  const shape = shapeOf(schema)
  if (shape && typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, redact(inner, shape[key])]))
  }
  const bare = unwrap(schema)
  if (bare instanceof z.ZodArray && Array.isArray(value))
    return value.map(entry => redact(entry, bare.element))
  return value
}

const HIDDEN = '***'

/** The schema under its default, prefault and optional wrappers. */
export function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) {
    return unwrap(schema.unwrap())
  }
  return schema
}

function shapeOf(schema: z.core.$ZodType): Shape | undefined {
  const bare = unwrap(schema)
  return bare instanceof z.ZodObject ? bare.shape : undefined
}

function metaOf(schema: z.core.$ZodType): OptionMeta | undefined {
  return z.globalRegistry.get(schema) as OptionMeta | undefined
}
