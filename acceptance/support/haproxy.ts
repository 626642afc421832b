import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { Client } from './client.ts'
import { freePort } from './free-port.ts'
import { until } from './until.ts'

const RECIPE = join(resolve(import.meta.dirname, '../..'), 'config/balancers/haproxy.cfg')
// Debian puts it where only root looks.
const PATH = `${process.env.PATH}:/usr/sbin`

/** HAProxy running the recipe as it stands; only where it listens and whom it serves is told by its environment. */
export class HAProxy {
  readonly port: number
  /** Its log: changes of a server's state, and requests that did not go smoothly. */
  readonly log: string[] = []
  readonly #child: ChildProcess

  static get installed(): boolean {
    return spawnSync('haproxy', ['-v'], { env: { PATH } }).status === 0
  }

  /** Starts it in front of the two instances and waits until it serves. */
  static async start(onePort: number, twoPort: number): Promise<HAProxy> {
    const proxy = new HAProxy(await freePort(), onePort, twoPort)
    const client = new Client(proxy.port, undefined, () => {})
    try {
      await until('HAProxy to serve', async () => {
        const { exitCode } = proxy.#child
        if (exitCode !== null) throw new Error(`HAProxy exited with ${exitCode}: ${proxy.log.join('\n')}`)
        return client.get('/health/live').then(
          ({ status }) => status === 200,
          () => false,
        )
      })
    } catch (error) {
      await proxy.end()
      throw error
    } finally {
      client.close()
    }
    return proxy
  }

  private constructor(port: number, onePort: number, twoPort: number) {
    this.port = port
    this.#child = spawn('haproxy', ['-db', '-f', RECIPE], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH,
        PUNCTUAL_BIND: `127.0.0.1:${port}`,
        PUNCTUAL_ONE: `127.0.0.1:${onePort}`,
        PUNCTUAL_TWO: `127.0.0.1:${twoPort}`,
      },
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream) createInterface(stream).on('line', line => this.log.push(line))
    }
    // The last resort when the acceptance itself is stopped.
    process.once('exit', () => this.#child.kill('SIGKILL'))
  }

  /** Waits until its log, from line `since` on, says that `server` is in this state. */
  async saw(server: string, state: 'UP' | 'DOWN', since: number, limitMs: number): Promise<void> {
    const sentence = `Server punctual/${server} is ${state}`
    await until(
      `HAProxy to say "${sentence}"`,
      () => this.log.slice(since).some(line => line.includes(sentence)),
      limitMs,
    )
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.kill('SIGKILL')
    await once(this.#child, 'exit')
  }
}
