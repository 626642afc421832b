/** One HTTP answer as its caller saw it. */
export interface Answer {
  readonly status: number
  /** Names in lower case; repeated fields joined with a comma. */
  readonly headers: Readonly<Record<string, string>>
  /** The body's text, byte for byte as UTF-8. */
  readonly body: string
  /** From the first byte sent to the last byte read. */
  readonly elapsedMs: number
}

/** The body as a JSON object. */
export function jsonOf(answer: Answer): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(answer.body)
  } catch {
    throw new Error(`expected JSON, saw ${describe(answer, 300)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`expected a JSON object, saw ${describe(answer, 300)}`)
  }
  return value as Record<string, unknown>
}

/** Status, time and the beginning of the body, on one line. */
export function describe(answer: Answer, maxLength: number): string {
  const body = answer.body.replaceAll(/\s+/g, ' ')
  const shown = body.length > maxLength ? `${body.slice(0, maxLength)}…` : body
  return `${answer.status} in ${Math.round(answer.elapsedMs)} ms ${shown || '(no body)'}`
}

/** How often each status came: "201 × 60, 429 × 90". */
export function tally(answers: readonly Answer[]): string {
  const counts = new Map<number, number>()
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts]
    .sort(([left], [right]) => left - right)
    .map(([status, count]) => `${status} × ${count}`)
    .join(', ')
}
