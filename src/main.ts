import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { type App, startApp } from './app.ts'
import { type Config, ConfigError, generatedPages, loadConfig, redact } from './config/index.ts'
import { DEMO_KEY_SHA256 } from './http/index.ts'
import { systemClock } from './runtime/index.ts'
import { createLogger, eventLines, LogStream } from './telemetry/index.ts'

/**
 * The process: the only reader of the environment and the command line, the only one to exit.
 *
 *   node src/main.ts                runs the API in the foreground
 *   node src/main.ts config:check   validates and prints the configuration
 *   node src/main.ts generate       writes the pages that are made from the options
 *
 * Exit status: 0 done or drained, 1 a fault, 75 requests had to be dropped, 78 the configuration is refused.
 */
const EXIT = { ok: 0, fault: 1, dropped: 75, config: 78 } as const

// Under npm a signal to the whole group reaches us twice, as npm passes its own on: one Ctrl-C is not two.
const SIGNAL_ECHO_MS = process.env.npm_lifecycle_event === undefined ? 0 : 50
// A reader that has stalled holds the exit up this long and no longer.
const LOG_FLUSH_MS = 500
// A fault that comes again and again is told so often.
const FAULT_LINES = 10
// What may wait for such a reader before lines are dropped.
const LOG_BUFFER_BYTES = 4_194_304

const CONFIG_FOLDER = fileURLToPath(new URL('../config', import.meta.url))

const [command, ...surplus] = process.argv.slice(2)
if (surplus.length > 0) usage()
switch (command) {
  case undefined:
    await serve(configOrExit())
    break
  case 'config:check':
    process.stdout.write(`${JSON.stringify(redact(configOrExit()), undefined, 2)}\n`)
    break
  case 'generate':
    for (const [name, text] of generatedPages()) writeFileSync(join(CONFIG_FOLDER, name), text)
    break
  default:
    usage()
}

function usage(): never {
  process.stderr.write('usage: node src/main.ts [config:check | generate]\n')
  process.exit(EXIT.fault)
}

function configOrExit(): Config {
  try {
    return loadConfig(CONFIG_FOLDER, process.env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const violation of error.violations) process.stderr.write(`configuration: ${violation}\n`)
    process.exit(EXIT.config)
  }
}

async function serve(config: Config): Promise<void> {
  const destination = pino.destination({ dest: 1, sync: false, maxLength: LOG_BUFFER_BYTES })
  const stream = new LogStream(destination)
  const logger = createLogger(config.log, stream)
  const shownConfig = redact(config) as object
  const { shutdownTimeoutSeconds } = config.lifecycle
  logger.info({ config: shownConfig }, 'configuration')

  let app: Promise<App> | undefined
  let signalledMs: number | undefined
  let stopping: { status: number } | undefined
  let faults = 0
  let exiting = false
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      // On its way out; a line more would be a fault of its own.
      if (exiting) return
      if (faults++ < FAULT_LINES) tell(error, event)
      stop(EXIT.fault)
    })
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      const nowMs = systemClock.nowMs()
      if (signalledMs !== undefined && nowMs - signalledMs < SIGNAL_ECHO_MS) return
      // The first one lets a drain go on that a fault has begun.
      if (signalledMs !== undefined) return exit(EXIT.fault)
      signalledMs = nowMs
      logger.info({ signal }, 'stopping')
      stop(EXIT.ok)
    })
  }

  app = startApp(config, {
    clock: systemClock,
    logger,
    writeEvent: eventLines(logger, stream),
    shownConfig,
  })
  try {
    const { port, warmedUp } = await app
    // Nobody may be there to read it.
    process.stderr.on('error', () => {})
    if ((await warmedUp) && hasDemoKey(config)) process.stderr.write(tryIt(config.http.host, port))
  } catch (error) {
    logger.fatal({ reason: error instanceof Error ? error.message : String(error) }, 'cannot start')
    exit(EXIT.fault)
  }

  /** Whatever may have been thrown: what cannot be shown must not end the process another way. */
  function tell(error: unknown, what: string): void {
    try {
      logger.fatal({ err: error }, what)
    } catch {
      logger.fatal(what)
    }
  }

  /** Drains, then exits: with `status`, or with what is worse. */
  function stop(status: number): void {
    if (stopping) {
      stopping.status ||= status
      return
    }
    const end = { status }
    stopping = end
    setTimeout(() => {
      logger.fatal({ seconds: shutdownTimeoutSeconds }, 'not stopped in time')
      exit(EXIT.fault)
    }, shutdownTimeoutSeconds * 1000).unref()
    if (app === undefined) return exit(EXIT.fault)
    // During the start it waits for that: what is half-built cannot be taken down in order.
    app.then(
      app =>
        app.stop().then(
          dropped => exit(end.status || (dropped === 0 ? EXIT.ok : EXIT.dropped)),
          (error: unknown) => {
            tell(error, 'cannot stop')
            exit(EXIT.fault)
          },
        ),
      // A start that fails is told of, and ends the process, by itself.
      () => {},
    )
  }

  /** Ends the process with its last log lines written, if anybody still reads them. */
  function exit(status: number): void {
    exiting = true
    const end = () => {
      // Destroyed, so that pino's own flush at exit is skipped: on a broken pipe it never returns.
      destination.destroy()
      process.exit(status)
    }
    setTimeout(end, LOG_FLUSH_MS)
    destination.once('close', end).once('error', end)
    destination.end()
  }
}

function hasDemoKey({ auth }: Config): boolean {
  return auth.keys.some(key => key.sha256 === DEMO_KEY_SHA256)
}

function tryIt(host: string, port: number): string {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return `
Place an order:

  curl -i http://${authority}/v1/orders -H 'Authorization: Bearer demo' -H 'Idempotency-Key: first-order' -H 'Content-Type: application/json' -d '{"customerId":"cust-1","currency":"USD","items":[{"sku":"SKU-1","quantity":2}]}'

`
}
