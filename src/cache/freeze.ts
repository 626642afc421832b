// Data of ours nests four deep. What nests without end must not end the stack of whoever walks it.
const MAX_DEPTH = 100

/**
 * Freezes JSON-like data through and through, so that no reader can change what another one gets. Throws `RangeError`
 * when it nests deeper than 100.
 */
export function freeze<Value>(value: Value, depth = 0): Value {
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) throw new RangeError('a value nests too deep to be kept')
  for (const member of Object.values(value)) freeze(member, depth + 1)
  return Object.freeze(value)
}
