import { z } from 'zod'
import { capacityOptions } from '../admission/options.ts'
import { cacheOptions } from '../cache/options.ts'
import { authOptions, httpOptions } from '../http/options.ts'
import { idempotencyOptions } from '../idempotency/options.ts'
import { deadlineOptions } from '../lease/options.ts'
import { lifecycleOptions } from '../lifecycle/options.ts'
import { outboundOptions } from '../outbound/options.ts'
import { outboxOptions } from '../outbox/options.ts'
import { storeOptions } from '../store/options.ts'
import { logOptions } from '../telemetry/options.ts'

/** The whole configuration: the options of every folder, each key documented where its code lives. */
export const configSchema = z.strictObject({
  http: httpOptions,
  capacity: capacityOptions,
  deadline: deadlineOptions,
  outbound: outboundOptions,
  store: storeOptions,
  idempotency: idempotencyOptions,
  outbox: outboxOptions,
  cache: cacheOptions,
  lifecycle: lifecycleOptions,
  auth: authOptions,
  log: logOptions,
})

export type Config = z.output<typeof configSchema>
