import type { z } from 'zod'
import type { logOptions } from './options.ts'

export type { Channels } from './channels.ts'
export { createLogger, logChannels } from './logger.ts'
export { createMetrics } from './metrics.ts'
export type LogOptions = z.output<typeof logOptions>
