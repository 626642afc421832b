import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { demand, same } from '../../support/expect.ts'
import { temporaryFolder } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

/**
 * `npm start`, as a person or a supervisor stops it: by a signal to npm alone, which must reach the process behind
 * it, or by one to the whole group (Ctrl-C), which reaches that process twice and must still be one.
 */
export async function npmStart(trial: Trial): Promise<void> {
  for (const [what, whole] of [
    ['npm alone', false],
    ['the whole group', true],
  ] as const) {
    await trial.check(
      `npm start, stopped by a signal to ${what}: drained, and nothing stays behind`,
      async () => {
        const { lines, signal, ended } = await start(trial)
        const started = await until(
          'the server to be ready',
          () => lines.find(line => line.includes('"msg":"ready"')),
          15_000,
        )
        signal(whole)
        await until('npm to end', ended, 10_000)
        demand(
          lines.some(line => line.includes('"drained"')),
          `a drain in the log, saw ${lines.at(-1)}`,
        )
        const { port } = JSON.parse(started) as { port: number }
        const answer = await fetch(`http://127.0.0.1:${port}/health/live`).catch(() => undefined)
        same(answer, undefined, 'whoever answers on its port')
        return 'drained'
      },
    )
  }
}

async function start(trial: Trial) {
  const folder = await temporaryFolder()
  const child = spawn('npm', ['start'], {
    cwd: resolve(import.meta.dirname, '../../..'),
    // A group of its own, so that one can be signalled without the other.
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: '0',
      STORE_PATH: join(folder, 'store.db'),
      NODE_CONFIG: JSON.stringify({ http: { adminPort: 0 }, lifecycle: { unreadyDelayMs: 100 } }),
    },
  })
  const { pid } = child
  demand(pid !== undefined, 'npm to start')
  const lines: string[] = []
  createInterface(child.stdout).on('line', line => lines.push(line))
  let closed = false
  child.on('close', () => {
    closed = true
  })
  trial.own(async () => {
    if (!closed) {
      process.kill(-pid, 'SIGKILL')
      await once(child, 'close')
    }
    await rm(folder, { recursive: true, force: true })
  })
  const signal = (whole: boolean) => void process.kill(whole ? -pid : pid, 'SIGTERM')
  return { lines, signal, ended: () => closed }
}
