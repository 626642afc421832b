import { type Clock, Periodic } from '../runtime/index.ts'
import type { Backlog, Outbox } from '../store/index.ts'
import type { OutboxOptions } from './options.ts'

const INTERVAL_MS = 1_000
const UNKNOWN: Backlog = { pending: 0, dead: 0, oldestAtMs: undefined }

/** What waits in the outbox, measured once a second; while the store cannot say, what it said last. */
export class OutboxGauge {
  #backlog: Backlog = UNKNOWN
  readonly #closing = new AbortController()
  readonly #periodic: Periodic
  readonly #options: Pick<OutboxOptions, 'degradedAfterSeconds'>
  readonly #clock: Clock

  constructor(deps: {
    outbox: Outbox
    options: Pick<OutboxOptions, 'degradedAfterSeconds'>
    clock: Clock
    onFault: (error: unknown) => void
  }) {
    this.#options = deps.options
    this.#clock = deps.clock
    this.#periodic = new Periodic({
      clock: deps.clock,
      intervalMs: INTERVAL_MS,
      pauseMs: INTERVAL_MS,
      step: async () => {
        const backlog = await deps.outbox.measure(this.#closing.signal)
        if (backlog.kind === 'found') this.#backlog = backlog.value
        return false
      },
      onFault: deps.onFault,
    })
  }

  get backlog(): Backlog {
    return this.#backlog
  }

  get oldestAgeSeconds(): number {
    const { oldestAtMs } = this.#backlog
    return oldestAtMs === undefined ? 0 : Math.max(0, (this.#clock.wallMs() - oldestAtMs) / 1000)
  }

  /** For readiness: events wait too long. */
  degraded(): string | undefined {
    if (this.oldestAgeSeconds <= this.#options.degradedAfterSeconds) return undefined
    return `events wait longer than ${this.#options.degradedAfterSeconds} s`
  }

  start(): void {
    this.#periodic.start()
  }

  close(): Promise<void> {
    this.#closing.abort()
    return this.#periodic.close()
  }
}
