import { get } from 'node:http'

/**
 * What a container engine asks: is the process alive? Exit 0 when `/health/live` says so within its time, else 1.
 * Alive, not ready: an engine that restarts what is unready would cut short what is draining.
 */
const LIMIT_MS = 2_000

const asking = get({
  host: '127.0.0.1',
  port: process.env.PORT ?? 8080,
  path: '/health/live',
  // An agent of its own: the global one may be told by the environment to go through a proxy.
  agent: false,
  signal: AbortSignal.timeout(LIMIT_MS),
})
asking.on('response', ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1))
asking.on('error', ({ message }) => {
  console.error(message)
  process.exit(1)
})
