import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { demand, same } from '../../support/expect.ts'
import { runToEnd, type ServerOptions, temporaryFolder } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { clear, isComplaint, shown } from './ending.ts'

const START_LIMIT_MS = 5_000

/** Ports and stores that cannot be had: one clear line and a non-zero exit, at once. */
export async function footing(trial: Trial): Promise<void> {
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
  const complaints = ending.lines.filter(isComplaint)
  same(complaints.length, 1, `of ${JSON.stringify(ending.lines)} the number of complaints`)
  demand(String(complaints[0]).includes(culprit), `${culprit} in the complaint, saw ${complaints[0]}`)
  clear(ending)
  return shown(ending)
}
