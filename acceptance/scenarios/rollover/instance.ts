import { rm } from 'node:fs/promises'
import { between, same } from '../../support/expect.ts'
import { freePort } from '../../support/free-port.ts'
import type { HAProxy } from '../../support/haproxy.ts'
import { later } from '../../support/later.ts'
import { type Json, type Server, type ServerOptions, temporaryFolder } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'

/** Of `lifecycle.unreadyDelayMs`: what the balancer has to notice in. */
const UNREADY_DELAY_MS = 1_000
const UP_LIMIT_MS = 3_000

/** One of the balancer's servers: a process that goes and comes again, on the same port and the same store. */
export class Instance {
  readonly name: string
  readonly port: number
  readonly #trial: Trial
  readonly #options: ServerOptions
  #server: Server

  static async start(trial: Trial, name: string, config: Json): Promise<Instance> {
    const folder = await temporaryFolder()
    trial.own(() => rm(folder, { recursive: true }))
    const port = await freePort()
    const options = { folder, config, env: { PORT: String(port) } }
    return new Instance(trial, name, options, await trial.server(options))
  }

  private constructor(trial: Trial, name: string, options: ServerOptions, server: Server) {
    this.#trial = trial
    this.name = name
    this.port = server.port
    this.#options = options
    this.#server = server
  }

  /** SIGTERM, exit 0, start; done when the balancer sends requests again. Says how long each step took. */
  async restart(balancer: HAProxy): Promise<string> {
    const since = balancer.log.length
    const signalMs = performance.now()
    this.#server.signal('SIGTERM')
    const noticing = later(
      balancer.saw(this.name, 'DOWN', since, 2 * UNREADY_DELAY_MS).then(() => performance.now() - signalMs),
    )
    const code = await this.#server.exit()
    const exitMs = performance.now() - signalMs
    const startMs = performance.now()
    this.#server = await this.#trial.server(this.#options)
    const readyMs = performance.now() - startMs
    // Judged when it is back, so that what fails here does not take the rest along.
    same(code, 0, 'the exit code')
    const noticedMs = await noticing
    between(noticedMs, 0, UNREADY_DELAY_MS, 'the time in which the balancer noticed, in ms,')
    await balancer.saw(this.name, 'UP', since, UP_LIMIT_MS)
    const upMs = performance.now() - startMs
    return `unready seen after ${ms(noticedMs)}, exit 0 after ${ms(exitMs)}; started: ready after ${ms(readyMs)}, up after ${ms(upMs)}`
  }
}

function ms(value: number): string {
  return `${Math.round(value)} ms`
}
