/**
 * Whether a JSON text names a member twice in one object, which RFC 7493 (I-JSON, section 2.3) forbids: JSON.parse
 * keeps the last and says nothing. `value` is what the well-formed `text` parsed to.
 *
 * In well-formed JSON each member is one colon outside a string, so a text with more colons than its value has
 * members named one twice. Walks `value`, so it must not be deeper than a stack is.
 */
export function hasRepeatedMembers(text: string, value: unknown): boolean {
  return countMembers(value) !== countColons(text)
}

function countColons(text: string): number {
  let colons = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (quoted && char === BACKSLASH) at++
    else if (char === QUOTE) quoted = !quoted
    else if (!quoted && char === COLON) colons++
  }
  return colons
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const children: unknown[] = Object.values(value)
  const own = Array.isArray(value) ? 0 : children.length
  return children.reduce((sum: number, child) => sum + countMembers(child), own)
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
