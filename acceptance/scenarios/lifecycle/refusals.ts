import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { between, demand, same } from '../../support/expect.ts'
import { KEY_ENTRIES } from '../../support/keys.ts'
import {
  type Ending,
  type Json,
  runToEnd,
  type ServerOptions,
  temporaryFolder,
} from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'

const START_LIMIT_MS = 5_000
const CONFIG_EXIT_CODE = 78

/** Configurations that must not be started with, and a word of each violation that must be listed. */
const BROKEN: Record<string, [config: Json, ...named: string[]]> = {
  'an unknown key': [{ http: { porrt: 1 } }, 'http.porrt'],
  'an unknown group': [{ htttp: { port: 1 } }, 'htttp'],
  'a number out of bounds': [{ capacity: { maxConcurrent: 0 } }, 'capacity.maxConcurrent'],
  'a number that is a string': [{ deadline: { requestBudgetMs: '200' } }, 'deadline.requestBudgetMs'],
  'a fraction where a whole number stands': [
    { deadline: { requestBudgetMs: 200.5 } },
    'deadline.requestBudgetMs',
  ],
  'an API key without hash': [
    { auth: { keys: [{ id: 'a', tenant: 'a', scopes: ['orders:read'] }] } },
    'sha256',
  ],
  'an unknown scope': [{ auth: { keys: [{ ...KEY_ENTRIES[0], scopes: ['orders:all'] }] } as Json }, 'scopes'],
  'an outbound lease longer than the request': [
    { outbound: { leaseMs: 500 } },
    'requestBudgetMs > outbound.leaseMs',
    'commitReserveMs',
  ],
  'an attempt longer than all attempts': [{ outbound: { attemptMs: 130 } }, 'attemptMs'],
  'all attempts too short for two and a back-off': [{ outbound: { totalMs: 85 } }, 'outbound.totalMs'],
  'no room for the commit': [{ outbound: { leaseMs: 190 } }, 'commitReserveMs'],
  'a breaker that samples too briefly': [
    {
      deadline: { requestBudgetMs: 9_000 },
      outbound: { leaseMs: 8_000, totalMs: 7_000, attemptMs: 900, breaker: { samplingSeconds: 1 } },
    },
    'samplingSeconds',
  ],
  'fewer permits than the load needs': [{ capacity: { maxConcurrent: 59 } }, 'capacity.maxConcurrent'],
  'a drain longer than the shutdown': [
    { lifecycle: { drainSeconds: 20, shutdownTimeoutSeconds: 20 } },
    'lifecycle.drainSeconds',
  ],
  'a drain longer than a supervisor waits': [
    { lifecycle: { drainSeconds: 25, shutdownTimeoutSeconds: 30 } },
    'lifecycle.drainSeconds',
  ],
  'a busy timeout beyond the budget': [{ store: { sqlite: { busyTimeoutMs: 200 } } }, 'busyTimeoutMs'],
  'several unknown keys and bounds at once': [
    { http: { porrt: 1, keepAliveTimeoutMs: -1 }, capacity: { permits: 5 }, log: { level: 'loud' } },
    'http.porrt',
    'http.keepAliveTimeoutMs',
    'capacity.permits',
    'log.level',
  ],
  'several contradictions at once': [
    {
      capacity: { maxConcurrent: 1 },
      outbound: { leaseMs: 500 },
      lifecycle: { drainSeconds: 30 },
      store: { sqlite: { busyTimeoutMs: 5_000 } },
    },
    'capacity.maxConcurrent',
    'outbound.leaseMs',
    'lifecycle.drainSeconds',
    'busyTimeoutMs',
  ],
  'an unknown key beside a contradiction': [
    { http: { porrt: 1 }, outbound: { leaseMs: 500 } },
    'http.porrt',
    'outbound.leaseMs',
  ],
}

/** Each bad footing ends in a clear line and a non-zero exit, at once. */
export async function refusals(trial: Trial): Promise<void> {
  for (const [what, [config, ...named]] of Object.entries(BROKEN)) {
    await trial.check(`configuration: ${what} is refused with 78`, async () => {
      const ending = await runToEnd({ config }, START_LIMIT_MS)
      same(ending.code, CONFIG_EXIT_CODE, 'the exit code')
      const text = ending.lines.join('\n')
      for (const name of named) demand(text.includes(name), `${name} among the violations, saw ${text}`)
      clear(ending)
      return shown(ending)
    })
  }

  const environments: Record<string, [env: Record<string, string>, named: string]> = {
    'a PORT that is no number': [{ PORT: 'eighty' }, 'port'],
    'a PORT beyond all ports': [{ PORT: '70000' }, 'http.port'],
    'a LOG_LEVEL that does not exist': [{ LOG_LEVEL: 'loud' }, 'log.level'],
    'a PRICING_URL that is none': [{ PRICING_URL: 'not a url' }, 'outbound.baseUrl'],
    'a NODE_CONFIG that is no JSON': [{ NODE_CONFIG: '{"http":' }, 'NODE_CONFIG'],
    'a NODE_CONFIG that is a list': [{ NODE_CONFIG: '[]' }, 'NODE_CONFIG'],
    'the demo key in production': [
      { NODE_ENV: 'production', NODE_CONFIG: '{"http":{"adminPort":0}}' },
      'demo key',
    ],
    'the demo key off loopback': [{ HOST: '0.0.0.0', NODE_CONFIG: '{"http":{"adminPort":0}}' }, 'demo key'],
    'an admin listener off loopback without token': [
      { NODE_CONFIG: '{"http":{"adminPort":0,"adminHost":"0.0.0.0"}}' },
      'adminToken',
    ],
  }
  for (const [what, [env, named]] of Object.entries(environments)) {
    await trial.check(`environment: ${what} is refused with 78`, async () => {
      const ending = await runToEnd({ env }, START_LIMIT_MS)
      same(ending.code, CONFIG_EXIT_CODE, 'the exit code')
      const text = ending.lines.join('\n')
      demand(text.toLowerCase().includes(named.toLowerCase()), `${named} among the violations, saw ${text}`)
      clear(ending)
      return shown(ending)
    })
  }

  await trial.check('config:check passes a good configuration, its secrets hidden', async () => {
    const ending = await runToEnd({}, START_LIMIT_MS, 'config:check')
    same(ending.code, 0, 'the exit code')
    const text = ending.lines.join('\n')
    for (const { id, sha256 } of KEY_ENTRIES) demand(!text.includes(sha256), `no hash of ${id}`)
    demand(text.includes('requestBudgetMs'), `the configuration, saw ${text.slice(0, 200)}`)
    return `${ending.lines.length} lines`
  })

  await trial.check('config:check refuses a bad configuration with 78', async () => {
    const config = { http: { porrt: 1 }, capacity: { permits: 5 } }
    const ending = await runToEnd({ config }, START_LIMIT_MS, 'config:check')
    same(ending.code, CONFIG_EXIT_CODE, 'the exit code')
    for (const name of ['http.porrt', 'capacity.permits']) {
      demand(ending.lines.join('\n').includes(name), `${name} among the violations`)
    }
    return shown(ending)
  })

  await ports(trial)
  await stores(trial)
}

async function ports(trial: Trial): Promise<void> {
  const occupant = createServer()
  occupant.listen(0, '127.0.0.1')
  await once(occupant, 'listening')
  trial.own(() => {
    occupant.close()
  })
  const { port } = occupant.address() as AddressInfo
  for (const [what, options] of Object.entries<ServerOptions>({
    'the port': { env: { PORT: String(port) } },
    'the admin port': { config: { http: { adminPort: port } } },
  })) {
    await trial.check(`${what} is in use: one clear line and a non-zero exit`, () =>
      oneLine(options, String(port)),
    )
  }
}

async function stores(trial: Trial): Promise<void> {
  const folder = await temporaryFolder()
  trial.own(() => rm(folder, { recursive: true }))
  const file = join(folder, 'file')
  await writeFile(file, 'just text, and more of it than a page of a database has in its header. '.repeat(100))
  const directory = join(folder, 'directory')
  await mkdir(directory)
  for (const [what, path] of Object.entries({
    'is a directory': directory,
    'lies below a file': join(file, 'store.db'),
    'is a file that is no database': file,
    'lies where nothing can be written': '/proc/punctual/store.db',
  })) {
    await trial.check(`the store path ${what}: one clear line and a non-zero exit`, () =>
      oneLine({ env: { STORE_PATH: path } }, path),
    )
  }
}

/** Ends by itself with exactly one line of complaint, which names `culprit`. */
async function oneLine(options: ServerOptions, culprit: string): Promise<string> {
  const ending = await runToEnd(options, START_LIMIT_MS)
  demand(ending.code > 0, `a non-zero exit code, saw ${ending.code}`)
  between(ending.elapsedMs, 0, START_LIMIT_MS, 'the time to the exit, in ms,')
  const complaints = ending.lines.filter(isComplaint)
  same(complaints.length, 1, `of ${JSON.stringify(ending.lines)} the number of complaints`)
  demand(String(complaints[0]).includes(culprit), `${culprit} in the complaint, saw ${complaints[0]}`)
  clear(ending)
  return shown(ending)
}

/** A line that is not a log line of level info or below. */
function isComplaint(line: string): boolean {
  let level: unknown
  try {
    level = (JSON.parse(line) as { level?: unknown }).level
  } catch {
    return true
  }
  const quiet: unknown[] = ['trace', 'debug', 'info', 10, 20, 30]
  return !quiet.includes(level)
}

/** Words for whoever started it, not for whoever wrote it. */
function clear({ lines }: Ending): void {
  const text = lines.join('\n')
  demand(!/^\s+at |\\n\s+at |node:internal|node_modules/m.test(text), `no stack trace, saw ${text}`)
  for (const { sha256 } of KEY_ENTRIES) demand(!text.includes(sha256), 'no hash of an API key')
}

function shown({ code, lines }: Ending): string {
  return `exit ${code} ${String(lines.filter(isComplaint)[0]).slice(0, 160)}`
}
