import type { Clock } from '../runtime/index.ts'
import type { OutboxOptions } from './options.ts'
import { logSink, type WriteLine } from './sinks/log.ts'
import { noneSink } from './sinks/none.ts'
import type { Sink } from './sinks/sink.ts'
import { webhookSink } from './sinks/webhook.ts'

/** The sink that the configuration names. */
export function openSink(options: OutboxOptions, deps: { clock: Clock; writeLine: WriteLine }): Sink {
  switch (options.sink) {
    case 'log':
      return logSink(deps.writeLine)
    case 'webhook':
      return webhookSink(options.webhook, options.maxConcurrent, deps.clock)
    case 'none':
      return noneSink()
  }
}
