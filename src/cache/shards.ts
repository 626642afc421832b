/**
 * FNV-1a, 32 bits, over the UTF-8 bytes of `text` (RFC 9923): 0…2³² − 1, the same on every instance and in every
 * version. A lone surrogate counts as U+FFFD, as Node's encoder has it. No defence against keys made to collide.
 */
export function fnv1a(text: string): number {
  let hash = OFFSET_BASIS
  for (const byte of Buffer.from(text, 'utf8')) hash = Math.imul(hash ^ byte, PRIME)
  return hash >>> 0
}

/**
 * The shard of `text` among `count`, 0…count − 1: stable, since it depends on nothing else. −1 when there is none to
 * choose, which is any `count` but a whole number above 0.
 */
export function shardOf(text: string, count: number): number {
  if (!Number.isSafeInteger(count) || count <= 0) return -1
  return fnv1a(text) % count
}

const OFFSET_BASIS = 0x811c9dc5
const PRIME = 0x01000193
