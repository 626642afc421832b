import { join } from 'node:path'
import { Load } from 'config/lib/util.js'
import { z } from 'zod'
import { CONSTRAINTS } from './constraints.ts'
import { type Config, configSchema } from './schema.ts'
import { unwrap } from './walk.ts'

/** Thrown when a configuration must not be started with; lists everything that is wrong with it. */
export class ConfigError extends Error {
  readonly violations: readonly string[]

  constructor(violations: readonly string[]) {
    super(`${violations.length} configuration violation(s)`)
    this.name = 'ConfigError'
    this.violations = violations
  }
}

/** Where the process may be told things; `process.env` in production. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Loads the configuration: `default.json`, then `<NODE_ENV>.json`, then the named variables of
 * `custom-environment-variables.json`, then `NODE_CONFIG`. Files and merging are node-config's; what it yields is
 * validated, held against the constraints, and frozen. Throws `ConfigError`.
 */
export function loadConfig(folder: string, env: Environment): Config {
  const layers = mergeLayers(folder, env)
  const parsed = configSchema.safeParse(layers)
  if (!parsed.success) {
    // The rest is still held against the constraints, so that one start shows everything there is to mend.
    const rest = configSchema.safeParse(without(layers, parsed.error.issues))
    const broken = rest.success ? checkConstraints(rest.data, env) : []
    throw new ConfigError([...parsed.error.issues.flatMap(describeIssue), ...broken])
  }
  const violations = checkConstraints(parsed.data, env)
  if (violations.length > 0) throw new ConfigError(violations)
  return deepFreeze(parsed.data)
}

function checkConstraints(config: Config, env: Environment): string[] {
  // node-config takes a list of environments as well; a slip of the pen must not open the door either.
  const production = (env.NODE_ENV ?? '').split(',').some(name => name.trim().toLowerCase() === 'production')
  return CONSTRAINTS.flatMap(({ name, violation }) => {
    const found = violation(config, { production })
    return found === undefined ? [] : [`${name}: ${found}`]
  })
}

/** node-config fills named variables in only from `process.env`; this fills them in from what it is given. */
class Layers extends Load {
  named(names: object, env: Environment): object {
    return numbersFromText(this.substituteDeep(names as Record<string, unknown>, env)) as object
  }
}

/** Variables are text; where the schema wants a number and the text is one, it becomes one. */
function numbersFromText(value: unknown, schema: z.core.$ZodType = configSchema): unknown {
  const bare = unwrap(schema)
  if (bare instanceof z.ZodNumber)
    return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  if (!(bare instanceof z.ZodObject) || typeof value !== 'object' || value === null) return value
  const shape = bare.shape as Readonly<Record<string, z.core.$ZodType>>
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      shape[key] ? numbersFromText(inner, shape[key]) : inner,
    ]),
  )
}

/** A copy in which every value that an issue complains of is missing. */
function without(layers: object, issues: readonly z.core.$ZodIssue[]): object {
  const copy = structuredClone(layers)
  for (const issue of issues) {
    const paths =
      issue.code === 'unrecognized_keys' ? issue.keys.map(key => [...issue.path, key]) : [issue.path]
    for (const path of paths) {
      const holder = path.slice(0, -1).reduce<unknown>((value, key) => (value as never)?.[key], copy)
      if (typeof holder === 'object' && holder !== null) Reflect.deleteProperty(holder, path.at(-1) ?? '')
    }
  }
  return copy
}

function mergeLayers(folder: string, env: Environment): object {
  const load = new Layers({ configDir: folder, skipConfigSources: true })
  try {
    load.loadFile(join(folder, 'default.json'))
    if (env.NODE_ENV !== undefined && /^[A-Za-z0-9_-]+$/.test(env.NODE_ENV)) {
      load.loadFile(join(folder, `${env.NODE_ENV}.json`))
    }
    load.loadFile(join(folder, 'custom-environment-variables.json'), names => load.named(names, env))
  } catch (error) {
    throw new ConfigError([error instanceof Error ? error.message : String(error)])
  }
  if (env.NODE_CONFIG) load.addConfig('NODE_CONFIG', parseNodeConfig(env.NODE_CONFIG))
  return load.config
}

function parseNodeConfig(text: string): object {
  try {
    const value: unknown = JSON.parse(text, (key, inner: unknown) => {
      // Merged by name, these would reach what every object inherits from, before anything is validated.
      if (INHERITED.has(key)) throw new ConfigError([`NODE_CONFIG: ${key}: unknown key`])
      return inner
    })
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (error) {
    if (error instanceof ConfigError) throw error
    // Falls through: the text may hold a secret, so what the parser says about it is not repeated.
  }
  throw new ConfigError(['NODE_CONFIG is not a JSON object'])
}

const INHERITED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

function describeIssue(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(key => `${[...issue.path, key].join('.')}: unknown key`)
  return [`${issue.path.join('.') || '(root)'}: ${issue.message}`]
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(deepFreeze)
    Object.freeze(value)
  }
  return value
}
