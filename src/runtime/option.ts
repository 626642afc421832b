import { z } from 'zod'

/**
 * Builders for configuration keys. Each key says in one place what it is, its unit, its default, its bounds and
 * what one trades by turning it; `config/default.json` and `config/README.md` are generated from that.
 */
export interface OptionDoc {
  /** What the value is. */
  readonly is: string
  /** What turning it costs or buys. */
  readonly trade: string
  /** Never printed or logged. */
  readonly secret?: boolean
}

interface NumberOption extends OptionDoc {
  readonly unit: string
  readonly default: number
  readonly min: number
  readonly max: number
}

export interface OptionMeta extends OptionDoc {
  readonly unit?: string
}

function meta({ is, trade, secret, unit }: OptionDoc & { unit?: string }): OptionMeta {
  return { is, trade, ...(secret && { secret }), ...(unit && { unit }) }
}

/** A whole number with a unit and both bounds. */
export function wholeNumber(option: NumberOption) {
  return z
    .int()
    .min(option.min)
    .max(option.max)
    .default(option.default)
    .meta({ ...meta(option) })
}

/** A number with a unit and both bounds; for ratios and shares. */
export function fraction(option: NumberOption) {
  return z
    .number()
    .min(option.min)
    .max(option.max)
    .default(option.default)
    .meta({ ...meta(option) })
}

export function flag(option: OptionDoc & { default: boolean }) {
  return z
    .boolean()
    .default(option.default)
    .meta({ ...meta(option) })
}

export function text(option: OptionDoc & { default: string; pattern?: RegExp; maxLength: number }) {
  const base = z.string().max(option.maxLength)
  const schema = option.pattern ? base.regex(option.pattern) : base
  return schema.default(option.default).meta({ ...meta(option) })
}

export function oneOf<const Choices extends readonly [string, ...string[]]>(
  choices: Choices,
  option: OptionDoc & { default: Choices[number] },
) {
  return z
    .enum(choices)
    .default(option.default as never)
    .meta({ ...meta(option) })
}

/** A group of keys; unknown keys are violations, a missing group takes its defaults. */
export function group<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape).prefault({} as never)
}
