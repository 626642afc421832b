import type { Client } from './client.ts'
import { KEYS } from './keys.ts'
import type { PricingStandIn } from './pricing-stand-in.ts'
import type { Json, Server } from './server.ts'
import type { Trial } from './trial.ts'

/** A ready server with a pricing stand-in behind it, and everyone who may call it. */
export interface Bench {
  readonly trial: Trial
  readonly pricing: PricingStandIn
  readonly server: Server
  /** The key that may do everything. */
  readonly api: Client
  readonly as: Readonly<Record<keyof typeof KEYS, Client>>
  /** A caller without a key. */
  readonly nobody: Client
  readonly admin: Client
}

/** `folder`: an existing one, to find there what another server has stored. */
export async function openBench(trial: Trial, config: Json = {}, folder?: string): Promise<Bench> {
  const pricing = await trial.pricing()
  const server = await trial.server({ pricingUrl: pricing.url, config, ...(folder && { folder }) })
  const as = {
    full: trial.client(server.port, KEYS.full),
    masked: trial.client(server.port, KEYS.masked),
    reader: trial.client(server.port, KEYS.reader),
    writer: trial.client(server.port, KEYS.writer),
    stranger: trial.client(server.port, KEYS.stranger),
  }
  const nobody = trial.client(server.port)
  return { trial, pricing, server, api: as.full, as, nobody, admin: trial.watcher(server.adminPort) }
}

/**
 * Budgets so wide that a check can hold requests in a stage for as long as it likes. In the proportions of the
 * real ones, so that every constraint between them still holds.
 */
export const WIDE_BUDGETS = {
  deadline: { requestBudgetMs: 12_000 },
  outbound: { leaseMs: 11_000, totalMs: 10_500, attemptMs: 5_000 },
  cache: { waitTimeoutMs: 6_000, loadTimeoutMs: 5_400, queryTimeoutMs: 4_500 },
} satisfies Json
