const STEP_MS = 5

/**
 * Asks again and again until `probe` gives something other than undefined or false; for what has no event to
 * wait for. Throws, naming `what`, after `limitMs`.
 */
export async function until<Found>(
  what: string,
  probe: () => Found | undefined | false | Promise<Found | undefined | false>,
  limitMs = 2_000,
): Promise<Found> {
  const deadlineMs = performance.now() + limitMs
  for (;;) {
    const found = await probe()
    if (found !== undefined && found !== false) return found
    if (performance.now() >= deadlineMs) throw new Error(`waited ${limitMs} ms in vain for ${what}`)
    await new Promise(resolve => setTimeout(resolve, STEP_MS))
  }
}

/** Waits out a time that the server was configured to keep; for what ends without a sign. */
export function passed(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
