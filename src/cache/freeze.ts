/** Freezes JSON-like data through and through, so that no reader can change what another one gets. */
export function freeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) freeze(member)
  return Object.freeze(value)
}
