import { type DestinationStream, type Logger, pino } from 'pino'
import type { Channels } from './channels.ts'
import type { LogOptions } from './options.ts'

/** JSON lines: one object a line, times in RFC 3339, levels as words. */
export function createLogger(options: LogOptions, destination: DestinationStream): Logger {
  return pino(
    {
      level: options.level,
      base: { service: 'punctual' },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
    },
    destination,
  )
}

/** Writes what the mechanisms report. Only fields named here are logged: no header, body or key ever is. */
export function logChannels(logger: Logger, options: LogOptions, channels: Channels): void {
  const { cache, http, store, outbound, outbox, lifecycle } = channels
  if (options.requests !== 'none') {
    http.ended.subscribe(({ method, route, status, outcome, durationMs, traceId, code, stage, tenant }) => {
      if (options.requests === 'errors' && status < 500) return
      const fields = {
        method,
        route,
        status,
        outcome,
        durationMs: round(durationMs),
        traceId,
        code,
        stage,
        tenant,
      }
      logger[status === 500 ? 'error' : 'info'](fields, 'request')
    })
  }
  http.fault.subscribe(({ error, traceId }) => logger.error({ err: error, traceId }, 'fault'))
  store.health.subscribe(({ degraded }) => {
    if (degraded === undefined) logger.info('store recovered')
    else logger.error({ reason: degraded }, 'store degraded')
  })
  store.trouble.subscribe(({ reason }) => logger.error({ reason }, 'store trouble'))
  outbound.breaker.subscribe(({ state }) => logger.warn({ state }, 'pricing breaker'))
  cache.hotKey.subscribe(({ key, share, hot }) => {
    // A digest of what a caller sent could be guessed.
    logger.info({ key: key.replace(/[0-9a-f]{64}/g, '…'), share, hot }, 'hot key')
  })
  outbox.parked.subscribe(event => logger.error(event, 'event parked'))
  outbox.sink.subscribe(({ failing, reason }) => {
    if (failing) logger.warn({ reason }, 'event sink failing')
    else logger.info('event sink recovered')
  })
  lifecycle.phase.subscribe(({ phase, next, durationMs }) =>
    logger.info({ from: phase, phase: next, durationMs: round(durationMs) }, 'phase'),
  )
  lifecycle.warmUpFailed.subscribe(({ reason }) => logger.warn({ reason }, 'warm-up failed'))
  lifecycle.drained.subscribe(({ dropped }) => logger.info({ dropped }, 'drained'))
}

function round(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 100) / 100
}
