import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { KEY_ENTRIES } from './keys.ts'
import { until } from './until.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const START_LIMIT_MS = 15_000
const STOP_LIMIT_MS = 30_000

export interface Json {
  readonly [name: string]: string | number | boolean | readonly Json[] | readonly string[] | Json
}

export interface ServerOptions {
  /** Laid over the acceptance's own configuration. */
  readonly config?: Json
  readonly env?: Readonly<Record<string, string>>
  readonly pricingUrl?: string
  /** An existing folder to keep the store in; without it one is made and removed again. */
  readonly folder?: string
  /** What to wait for: that it is ready, or only that it listens. */
  readonly until?: 'ready' | 'listening'
}

/**
 * Server: the process under test, started as anyone would start it, with a store of its own. Whoever starts one
 * ends it; nothing but its own pid is ever signalled.
 */
export class Server {
  readonly port: number
  readonly adminPort: number
  readonly storePath: string
  readonly #run: Run

  constructor(run: Run, listening: Json, storePath: string) {
    this.#run = run
    this.port = Number(listening.port)
    this.adminPort = Number(listening.adminPort)
    this.storePath = storePath
  }

  /** Everything it has printed, line by line. */
  get lines(): readonly string[] {
    return this.#run.lines
  }

  get exited(): boolean {
    return this.#run.exitCode !== undefined
  }

  /** SIGUSR2 is the saboteur's, where there is one. */
  signal(name: 'SIGTERM' | 'SIGINT' | 'SIGKILL' | 'SIGUSR2'): void {
    this.#run.child.kill(name)
  }

  /** Waits until it is gone and gives its exit code; −1 when a signal ended it. */
  exit(limitMs = STOP_LIMIT_MS): Promise<number> {
    return until('the server to exit', () => this.#run.exitCode, limitMs)
  }

  /** Asks it to stop and gives its exit code. */
  stop(): Promise<number> {
    this.signal('SIGTERM')
    return this.exit()
  }

  /** Ends it at once and removes the folder that was made for it. */
  async end(): Promise<void> {
    await this.#run.end()
  }
}

/** Starts a server and waits until it is ready, or listens. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const folder = options.folder ?? (await temporaryFolder())
  const run = launch(options, folder, options.folder === undefined)
  try {
    const line = (msg: string) => until(`"msg":"${msg}"`, () => logged(run, msg), START_LIMIT_MS)
    const listening = await line('listening')
    if (options.until !== 'listening') await line('ready')
    return new Server(run, listening, join(folder, 'store.db'))
  } catch (error) {
    await run.end()
    throw new Error(
      `the server does not start: ${(error as Error).message}\n${run.lines.slice(-10).join('\n')}`,
    )
  }
}

export interface Ending {
  readonly code: number
  readonly lines: readonly string[]
  readonly elapsedMs: number
}

/** Starts a server, or another command of `src/main.ts`, that is expected to end by itself. */
export async function runToEnd(options: ServerOptions, limitMs: number, ...args: string[]): Promise<Ending> {
  const startedMs = performance.now()
  const run = launch(options, options.folder ?? (await temporaryFolder()), options.folder === undefined, args)
  try {
    const code = await until('the process to end by itself', () => run.exitCode, limitMs)
    return { code, lines: run.lines, elapsedMs: performance.now() - startedMs }
  } finally {
    await run.end()
  }
}

/** A fresh folder, gone at the latest when this process ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'punctual-acceptance-'))
  folders.add(folder)
  return folder
}

interface Run {
  readonly child: ChildProcess
  readonly lines: string[]
  /** Set once the process is gone and its output read; −1 when a signal ended it. */
  exitCode: number | undefined
  end(): Promise<void>
}

const running = new Set<Run>()
const folders = new Set<string>()
// The last resort when the acceptance itself is stopped: neither a server nor a store stays behind.
process.on('exit', () => {
  for (const { child } of running) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function launch(
  options: ServerOptions,
  folder: string,
  ownsFolder: boolean,
  args: readonly string[] = [],
): Run {
  const { PATH = '', HOME = '', NODE_OPTIONS = '' } = process.env
  const config = merged({ http: { adminPort: 0 }, auth: { keys: KEY_ENTRIES } }, options.config ?? {})
  const child = spawn(process.execPath, ['src/main.ts', ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    // Nothing else of this process's environment: it could configure the server behind a check's back.
    env: {
      PATH,
      HOME,
      NODE_OPTIONS,
      PORT: '0',
      STORE_PATH: join(folder, 'store.db'),
      NODE_CONFIG: JSON.stringify(config),
      ...(options.pricingUrl !== undefined && { PRICING_URL: options.pricingUrl }),
      ...options.env,
    },
  })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    if (stream) createInterface(stream).on('line', line => lines.push(line))
  }
  const run: Run = {
    child,
    lines,
    exitCode: undefined,
    async end() {
      if (run.exitCode === undefined) {
        child.kill('SIGKILL')
        await once(child, 'close')
      }
      if (ownsFolder) await rm(folder, { recursive: true, force: true })
    },
  }
  running.add(run)
  child.on('close', code => {
    run.exitCode = code ?? -1
    running.delete(run)
  })
  return run
}

function logged(run: Run, msg: string): Json | undefined {
  if (run.exitCode !== undefined) throw new Error(`it exited with ${run.exitCode}`)
  const line = run.lines.find(text => text.includes(`"msg":"${msg}"`))
  return line === undefined ? undefined : (JSON.parse(line) as Json)
}

/** `over` laid on `base`, group by group; lists are replaced, as the server's own layers do it. */
function merged(base: Json, over: Json): Json {
  const result: Record<string, Json[string]> = { ...base }
  for (const [name, value] of Object.entries(over)) {
    const below = result[name]
    result[name] = isGroup(below) && isGroup(value) ? merged(below, value) : value
  }
  return result
}

function isGroup(value: Json[string] | undefined): value is Json {
  return typeof value === 'object' && !Array.isArray(value)
}
