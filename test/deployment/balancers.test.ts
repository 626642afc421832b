import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { instructionsOf } from './dockerfile.ts'
import { DEFAULTS, documentsOf, inMs, PACKAGE, ROOT, textOf } from './recipes.ts'

/** The numbers in the recipes against the defaults that they were chosen for. */
const { http, deadline, lifecycle } = DEFAULTS
// Debian puts the balancers where only root looks.
const env = { PATH: `${process.env.PATH}:/usr/sbin` }
const answerMs = deadline.requestBudgetMs + deadline.settleGraceMs

describe('haproxy.cfg', () => {
  const path = 'config/balancers/haproxy.cfg'
  const text = withoutComments(textOf(path))

  /** What stands behind these words, wherever that is. */
  function following(words: string): string | undefined {
    return new RegExp(`(?:^|\\s)${words} +(\\S+)`).exec(text)?.[1]
  }

  it('sees that an instance is unready before its listener closes, even if each answer is as late as it may be', () => {
    const fall = Number(following('fall'))
    const noticedMs =
      inMs(following('inter')) +
      inMs(following('fastinter')) * (fall - 1) +
      inMs(following('timeout check')) * fall
    expect(noticedMs).toBeLessThan(lifecycle.unreadyDelayMs)
    expect(text).toContain('uri /health/ready')
    expect(text).toContain('http-check expect status 200')
  })

  it('never gives up on an answer before its budget is over', () => {
    expect(inMs(following('timeout server'))).toBeGreaterThan(5 * answerMs)
  })

  it('lets idle connections go before the server does', () => {
    expect(inMs(following('timeout http-keep-alive'))).toBeLessThan(http.keepAliveTimeoutMs)
    // Half of them each time, so that of a thousand hardly one is left after ten.
    expect(inMs(following('pool-purge-delay')) * 10).toBeLessThan(http.keepAliveTimeoutMs)
  })

  it('waits for a request as long as the server would', () => {
    expect(inMs(following('timeout http-request'))).toBe(http.headersTimeoutMs)
  })

  it('tries again only what was never sent, and holds no queue', () => {
    expect(/^ *retry-on (.*)$/m.exec(text)?.[1]).toBe('conn-failure')
    expect(following('redispatch')).toBe('1')
    expect(text.match(/\bmaxconn\b/g)).toHaveLength(1)
  })

  ifInstalled('haproxy', '-v')('is valid', () => {
    expect(complaintsOf('haproxy', ['-c', '-f', join(ROOT, path)])).toMatch(
      /^(Configuration file is valid)?$/,
    )
  })
})

describe('nginx.conf', () => {
  const path = 'config/balancers/nginx.conf'
  const text = withoutComments(textOf(path))

  function all(name: string): string[] {
    return [...text.matchAll(new RegExp(`^ *${name} +(.*);$`, 'gm'))].map(([, value]) => value ?? '')
  }

  it('never gives up on an answer before its budget is over', () => {
    expect(inMs(all('proxy_read_timeout')[0])).toBeGreaterThan(5 * answerMs)
  })

  it('lets idle connections go before the server does', () => {
    const idle = all('keepalive_timeout')
    expect(idle).toHaveLength(2)
    for (const value of idle) expect(inMs(value)).toBeLessThan(http.keepAliveTimeoutMs)
    expect(all('proxy_set_header')).toContain('Connection ""')
  })

  it('waits for a request as long as the server would, and takes no less of it', () => {
    expect(inMs(all('client_header_timeout')[0])).toBe(http.headersTimeoutMs)
    expect(Number.parseInt(all('client_max_body_size')[0] ?? '', 10) * 1_024).toBeGreaterThan(
      http.bodyLimitBytes,
    )
    expect(all('client_max_body_size')[0]).toMatch(/k$/)
  })

  it('tries again only what was never sent, or only reads', () => {
    expect(all('proxy_next_upstream')).toEqual(['error timeout'])
  })

  ifInstalled('nginx', '-v')('is valid', () => {
    const folder = mkdtempSync(join(tmpdir(), 'punctual-nginx-'))
    // To look at it nginx binds what it would listen on: a socket that anyone may make, instead of port 80.
    const copy = join(folder, 'nginx.conf')
    writeFileSync(copy, textOf(path).replace('listen 80;', `listen unix:${folder}/socket;`))
    const args = ['-t', '-q', '-e', 'stderr', '-p', folder, '-c', copy, '-g', `pid ${folder}/pid;`]
    expect(complaintsOf('nginx', args)).toBe('')
    rmSync(folder, { recursive: true })
  })
})

describe('kubernetes.yaml', () => {
  const [service, set] = documentsOf('config/balancers/kubernetes.yaml')
  const { template, replicas } = set.spec
  const [container] = template.spec.containers
  const dockerfile = instructionsOf(textOf('Dockerfile'))
  const restOf = (verb: string) => dockerfile.find(instruction => instruction.verb === verb)?.rest

  it('waits longer than a shutdown may take', () => {
    expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThan(lifecycle.shutdownTimeoutSeconds)
    expect(container.lifecycle).toBeUndefined()
  })

  it('has one replica on a volume of its own, where the image keeps its store', () => {
    expect([set.kind, replicas]).toEqual(['StatefulSet', 1])
    const mount = container.volumeMounts.find(({ name }: { name: string }) => name === 'orders')
    expect(mount.mountPath).toBe(restOf('VOLUME'))
    expect(set.spec.volumeClaimTemplates[0].metadata.name).toBe('orders')
  })

  it('asks readiness for traffic and liveness for life', () => {
    expect(container.readinessProbe.httpGet.path).toBe('/health/ready')
    expect(container.livenessProbe.httpGet.path).toBe('/health/live')
    expect(container.startupProbe.httpGet.path).toBe('/health/live')
  })

  it('runs the image as it is made: its version, its user, its port, nothing to write to', () => {
    const { runAsUser, runAsGroup, fsGroup } = template.spec.securityContext
    expect(container.image).toBe(`${PACKAGE.name}:${PACKAGE.version}`)
    expect(`${runAsUser}:${runAsGroup}`).toBe(restOf('USER'))
    expect(fsGroup).toBe(runAsGroup)
    expect(String(container.ports[0].containerPort)).toBe(restOf('EXPOSE'))
    expect(container.securityContext.readOnlyRootFilesystem).toBe(true)
    expect(service.spec.selector).toEqual(template.metadata.labels)
  })
})

function withoutComments(text: string): string {
  return text.replace(/^\s*#.*$/gm, '')
}

/** A test that needs a program: says loudly when it is not there, and fails without it where it must be (CI). */
function ifInstalled(program: string, ...args: string[]) {
  const installed = spawnSync(program, args, { env }).status === 0
  if (!installed)
    console.warn(
      `${program} is not installed (Debian: apt-get install ${program}): its recipe is not checked`,
    )
  return it.skipIf(!installed && !process.env.CI)
}

function complaintsOf(program: string, args: readonly string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', env }).trim()
}
