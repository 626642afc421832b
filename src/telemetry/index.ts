export type { Channels } from './channels.ts'
export { createLogger, logChannels } from './logger.ts'
export { createMetrics } from './metrics.ts'
