const OTHER_BYTES = 8

/** Bytes of UTF-8 in all text of JSON-like data, names included; 8 for each number or the like. */
export function textBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null) return OTHER_BYTES
  let bytes = 0
  for (const [name, member] of Object.entries(value)) {
    bytes += (Array.isArray(value) ? 0 : Buffer.byteLength(name)) + textBytes(member)
  }
  return bytes
}
