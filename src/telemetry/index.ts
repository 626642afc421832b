export { allChannels, type Channels } from './channels.ts'
export { EventLines } from './event-lines.ts'
export { createLogger, logChannels } from './logger.ts'
export { createMetrics } from './metrics.ts'
