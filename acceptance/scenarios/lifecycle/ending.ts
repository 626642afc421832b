import { demand } from '../../support/expect.ts'
import { KEY_ENTRIES } from '../../support/keys.ts'
import type { Ending } from '../../support/server.ts'

/** Words for whoever started it, not for whoever wrote it. */
export function clear({ lines }: Ending): void {
  const text = lines.join('\n')
  demand(!/^\s+at |\\n\s+at |node:internal|node_modules/m.test(text), `no stack trace, saw ${text}`)
  for (const { sha256 } of KEY_ENTRIES) demand(!text.includes(sha256), 'no hash of an API key')
}

/** The exit code and the first complaint, for the report. */
export function shown({ code, lines }: Ending): string {
  return `exit ${code} ${String(lines.filter(isComplaint)[0]).slice(0, 160)}`
}

/** A line that is not a log line of level info or below. */
export function isComplaint(line: string): boolean {
  let level: unknown
  try {
    level = (JSON.parse(line) as { level?: unknown }).level
  } catch {
    return true
  }
  const quiet: unknown[] = ['trace', 'debug', 'info', 10, 20, 30]
  return !quiet.includes(level)
}
