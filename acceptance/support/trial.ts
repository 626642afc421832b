import type { Answer } from './answer.ts'
import { describe } from './answer.ts'
import { Client } from './client.ts'
import { Connection } from './connection.ts'
import { PricingStandIn } from './pricing-stand-in.ts'
import { type Server, type ServerOptions, startServer } from './server.ts'

/** A set of checks that needs nothing from any other set. */
export interface Scenario {
  readonly name: string
  /** Past this the scenario counts as hung: it fails and its servers are ended. */
  readonly limitMs: number
  readonly play: (trial: Trial) => Promise<void>
}

/**
 * Trial: one run of one scenario. Counts its named checks, prints each with what was seen, and owns all that the
 * scenario starts, so that whatever happens nothing outlives it.
 *
 *   playing ──end()──▶ ended       afterwards a check that still runs neither prints nor counts
 */
export class Trial {
  passed = 0
  failed = 0
  readonly #names = new Set<string>()
  readonly #owned: (() => Promise<void> | void)[] = []
  readonly #pricing: PricingStandIn[] = []
  #current: string | undefined
  #seen: Answer[] = []
  #ended = false

  /**
   * One named check: passes when `body` returns. It may return a summary of what it saw; without one its answers
   * are shown.
   */
  async check(name: string, body: () => Promise<string | undefined> | Promise<void>): Promise<void> {
    if (this.#names.has(name)) throw new Error(`two checks are called "${name}"`)
    this.#names.add(name)
    this.#current = name
    this.#seen = []
    let summary: string | undefined
    let fault: unknown
    try {
      summary = (await body()) ?? undefined
    } catch (error) {
      fault = error
    }
    if (this.#ended) return
    this.#current = undefined
    if (fault === undefined) {
      this.passed++
      console.log(`  ok      ${name} · ${summary ?? shown(this.#seen)}`)
    } else {
      this.#fail(name, fault)
    }
  }

  /** Says that a check is not played here, and why. Where all that it needs must be there (CI), that is a failure. */
  skip(name: string, reason: string): void {
    if (process.env.CI) this.#fail(name, `${reason}, which CI must have`)
    else console.log(`  SKIPPED ${name} · ${reason}`)
  }

  /** Ends the trial for a reason that no check has caught: it counts as one failed check. */
  abort(reason: unknown): void {
    if (this.#ended) return
    this.#fail(this.#current ?? 'the scenario runs to its end', reason)
    this.#ended = true
  }

  /** Ends every server by its pid and lets go of all else. */
  async end(): Promise<void> {
    this.#ended = true
    for (const letGo of this.#owned.reverse()) await letGo()
  }

  async server(options: ServerOptions = {}): Promise<Server> {
    const pricing = this.#pricing.find(({ url }) => url === options.pricingUrl)
    const before = pricing?.calls.length ?? 0
    const server = await startServer(options)
    this.own(() => server.end())
    // Of its warm-up, which is not what checks count.
    pricing?.calls.splice(before)
    return server
  }

  async pricing(): Promise<PricingStandIn> {
    const pricing = await PricingStandIn.listen()
    this.own(() => pricing.close())
    this.#pricing.push(pricing)
    return pricing
  }

  /** A client whose answers are shown with the check that asked for them. */
  client(port: number, token?: string): Client {
    const client = new Client(port, token, answer => this.#seen.push(answer))
    this.own(() => client.close())
    return client
  }

  /** A client for looking, not for judging: its answers are not shown. */
  watcher(port: number): Client {
    const client = new Client(port, undefined, () => {})
    this.own(() => client.close())
    return client
  }

  /** A bare socket whose answers are shown with the check that asked for them. */
  async connect(port: number): Promise<Connection> {
    const connection = await Connection.open(port, answer => this.#seen.push(answer))
    this.own(() => connection.destroy())
    return connection
  }

  /** Runs `letGo` when the trial ends. */
  own(letGo: () => Promise<void> | void): void {
    this.#owned.push(letGo)
  }

  #fail(name: string, fault: unknown): void {
    this.failed++
    console.log(`  FAILED  ${name}`)
    console.log(`          ${fault instanceof Error ? fault.message : String(fault)}`)
    for (const answer of this.#seen.slice(-3)) console.log(`          saw ${describe(answer, 600)}`)
  }
}

/** Each status in turn, and of the answer that refuses most the beginning of the body. */
function shown(answers: readonly Answer[]): string {
  if (answers.length === 0) return 'as expected'
  const statuses = answers.slice(0, 6).map(answer => String(answer.status))
  if (answers.length > statuses.length) statuses.push('…')
  const most = answers.reduce((worst, answer) => (answer.status > worst.status ? answer : worst))
  return `${statuses.join(' ')} · ${describe(most, 100)}`
}
