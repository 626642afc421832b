import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ConfigError, loadConfig } from '../../src/config/index.ts'
import { instructionsOf, letsIn, pairsOf } from './dockerfile.ts'
import { DEFAULTS, documentsOf, inMs, PACKAGE, ROOT, textOf } from './recipes.ts'

/** The container, as far as it can be held to its promises without an engine. */
const dockerfile = instructionsOf(textOf('Dockerfile'))
const ignore = textOf('.dockerignore')
const env = pairsOf(dockerfile, 'ENV')
const CONFIG_FOLDER = join(ROOT, 'config')
const KEYS = JSON.stringify({
  auth: { keys: [{ id: 'a', tenant: 'a', sha256: 'a'.repeat(64), scopes: ['orders:read'] }] },
})

function restOf(verb: string): string {
  return dockerfile.find(instruction => instruction.verb === verb)?.rest ?? ''
}

describe('the Dockerfile', () => {
  it('stands on the Node.js that package.json pins, and on nothing else', () => {
    const stages = dockerfile.filter(({ verb }) => verb === 'FROM').map(({ rest }) => rest.split(' AS '))
    const names = stages.map(([, name]) => name)
    const bases = stages.map(([image]) => image).filter(image => !names.includes(image))
    expect(bases).toEqual([`node:${PACKAGE.devDependencies.node}-trixie-slim`])
  })

  it('copies only what is there and may go in', () => {
    const sources = dockerfile
      .filter(({ verb, rest }) => verb === 'COPY' && !rest.startsWith('--from='))
      .flatMap(({ rest }) => rest.split(' ').slice(0, -1))
    expect(sources.length).toBeGreaterThan(0)
    for (const source of sources) {
      expect(existsSync(join(ROOT, source)), source).toBe(true)
      expect(letsIn(ignore, source), source).toBe(true)
    }
  })

  it('lets in the source, what the process reads of the configuration, and no more', () => {
    const top = readdirSync(ROOT).filter(name => letsIn(ignore, name))
    expect(top.sort()).toEqual(['config', 'package-lock.json', 'package.json', 'src'])
    const config = readdirSync(CONFIG_FOLDER).filter(name => letsIn(ignore, `config/${name}`))
    expect(config.sort()).toEqual([
      'container',
      'custom-environment-variables.json',
      'default.json',
      'prices.json',
    ])
    for (const path of ['.git/config', 'data/punctual.db', 'node_modules/zod/index.js', '.npmrc', '.env']) {
      expect(letsIn(ignore, path), path).toBe(false)
    }
  })

  it('installs production dependencies only, and runs no script of theirs', () => {
    expect(restOf('RUN')).toMatch(/^npm ci --omit=dev --ignore-scripts /)
  })

  it('starts and asks without a shell, so that signals reach the process', () => {
    const [, probe = '', script = ''] = /CMD (\["node", "([^"]+)"\])$/.exec(restOf('HEALTHCHECK')) ?? []
    expect(existsSync(join(ROOT, script)), script).toBe(true)
    expect(letsIn(ignore, script)).toBe(true)
    expect(JSON.parse(probe)).toEqual(['node', script])
    expect(JSON.parse(restOf('ENTRYPOINT'))).toEqual(['node', 'src/main.ts'])
    expect(dockerfile.filter(({ verb }) => verb === 'CMD')).toEqual([])
  })

  it('does not run as root', () => {
    expect(restOf('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/)
  })

  it('is labelled as the package is', () => {
    const labels = pairsOf(dockerfile, 'LABEL')
    for (const [label, value] of Object.entries({
      title: PACKAGE.name,
      description: PACKAGE.description,
      version: PACKAGE.version,
      licenses: PACKAGE.license,
    })) {
      expect(labels[`org.opencontainers.image.${label}`], label).toBe(value)
    }
  })
})

describe('the environment of the image', () => {
  it('refuses the demo key', () => {
    const refused = () => loadConfig(CONFIG_FOLDER, env)
    expect(refused).toThrow(
      expect.objectContaining<Partial<ConfigError>>({
        violations: [expect.stringContaining('demo key')],
      }),
    )
  })

  it('listens for others on the port it exposes, keeps the store in its volume, and its admin listener to itself', () => {
    const { http, store } = loadConfig(CONFIG_FOLDER, { ...env, NODE_CONFIG: KEYS })
    expect(http.host).toBe('0.0.0.0')
    expect(String(http.port)).toBe(restOf('EXPOSE'))
    expect(http.adminHost).toBe('127.0.0.1')
    expect(dirname(store.sqlite.path)).toBe(restOf('VOLUME'))
  })
})

describe('compose.yaml', () => {
  const [{ services }] = documentsOf('compose.yaml')
  const service = services.punctual

  it('waits longer than a shutdown may take', () => {
    const limitMs = DEFAULTS.lifecycle.shutdownTimeoutSeconds * 1_000
    expect(inMs(service.stop_grace_period)).toBeGreaterThan(limitMs)
  })

  it('leaves the process nothing but its volume', () => {
    expect(service.read_only).toBe(true)
    expect(service.cap_drop).toEqual(['ALL'])
    expect(service.security_opt).toEqual(['no-new-privileges:true'])
    expect(service.volumes).toEqual([`orders:${restOf('VOLUME')}`])
    expect(service.privileged).toBeUndefined()
  })

  it('names the version, and the port that the image exposes', () => {
    expect(service.image).toBe(`${PACKAGE.name}:${PACKAGE.version}`)
    expect(service.ports).toEqual([`127.0.0.1:8080:${restOf('EXPOSE')}`])
  })
})

describe('the health check of the container', () => {
  const alive: RequestListener = (req, res) => res.writeHead(req.url === '/health/live' ? 200 : 404).end()

  it.each<[string, number, RequestListener]>([
    ['0 when it is alive', 0, alive],
    ['1 when it says it is not', 1, (_, res) => res.writeHead(503).end()],
    ['1 when it hangs up', 1, req => req.socket.destroy()],
    ['1 when it says nothing', 1, () => {}],
  ])('exits with %s', async (_, expected, listener) => {
    const server = createServer(listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const startedMs = performance.now()
    expect(await checked((server.address() as AddressInfo).port)).toBe(expected)
    // The engine would kill it at the timeout of HEALTHCHECK, and call it the same.
    const timeoutMs = inMs(/--timeout=(\S+)/.exec(restOf('HEALTHCHECK'))?.[1])
    expect(performance.now() - startedMs).toBeLessThan(timeoutMs)
    server.closeAllConnections()
    server.close()
  })

  it('exits with 1 when nobody is there', async () => {
    expect(await checked(1)).toBe(1)
  })

  async function checked(port: number): Promise<number> {
    const child = spawn(process.execPath, ['config/container/healthcheck.ts'], {
      cwd: ROOT,
      stdio: 'ignore',
      env: { PORT: String(port) },
    })
    const [code] = await once(child, 'exit')
    return code
  }
})
