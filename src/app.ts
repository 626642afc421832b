import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { Gate } from './admission/index.ts'
import { Cache } from './cache/index.ts'
import type { Config } from './config/index.ts'
import { Problem } from './errors/index.ts'
import {
  ApiKeys,
  createAdminServer,
  createApiServer,
  createRoutes,
  drainable,
  listen,
  Rehearsal,
  type Stage,
} from './http/index.ts'
import { Ledger } from './idempotency/index.ts'
import { LoopClock } from './lease/index.ts'
import { drain, Lifecycle, WarmUp } from './lifecycle/index.ts'
import { type OrderStore, orderReads, rehearsedStore } from './orders/index.ts'
import { type OutboundChannels, PricingClient } from './outbound/index.ts'
import { CommitRate, DeadLetters, OutboxGauge, openSink, Relay } from './outbox/index.ts'
import {
  type BundledPricing,
  cachedPrices,
  createPriceShelf,
  rehearsedClient,
  startBundledPricing,
} from './pricing/index.ts'
import { type Clock, LoopLoad } from './runtime/index.ts'
import { openStore, type PurgeAsk, Sweep } from './store/index.ts'
import { allChannels, type Channels, createMetrics, logChannels } from './telemetry/index.ts'

const PRICE_FILE = fileURLToPath(new URL('../config/prices.json', import.meta.url))

/** A running instance. */
export interface App {
  readonly port: number
  readonly adminPort: number
  /** True once it is ready; false when it was stopped before. */
  readonly warmedUp: Promise<boolean>
  /** Lets go of everything in order; resolves with the number of requests that had to be dropped. */
  stop(): Promise<number>
}

export interface AppDeps {
  readonly clock: Clock
  readonly logger: Logger
  /** For the sink `log`: resolves with whether the line has left the process. */
  readonly writeEvent: (line: object, signal: AbortSignal) => Promise<boolean>
  /** The configuration with its secrets hidden, for the admin listener. */
  readonly shownConfig: object
}

/**
 * The composition root: the only place that knows every part. Builds from the bottom up, listens, warms up, and turns
 * ready; `stop` takes it down the other way round.
 */
export async function startApp(config: Config, deps: AppDeps): Promise<App> {
  const { clock, logger } = deps
  const startedMs = clock.nowMs()
  const channels = allChannels()
  logChannels(logger, config.log, channels)
  const onFault = (error: unknown) => logger.error({ err: error }, 'fault')

  const { commitReserveMs, settleGraceMs, requestBudgetMs } = config.deadline
  const { maxConcurrent } = config.capacity
  // A quarter of the cache's memory is for prices that serve while pricing is down.
  const shelfBytes = Math.floor(config.cache.maxBytes / 4)
  const store = await openStore(config.store, {
    clock,
    channels: channels.store,
    settleGraceMs,
    // Each request at most one at a time, and beside them the loads that refresh ahead.
    maxPending: maxConcurrent + config.cache.maxConcurrentLoads,
  })
  const undo: (() => unknown)[] = [() => store.close()]
  try {
    return await build()
  } catch (error) {
    for (const step of undo.reverse()) await step()
    throw error
  }

  async function build(): Promise<App> {
    const bundled: BundledPricing | undefined =
      config.outbound.baseUrl === 'bundled'
        ? await startBundledPricing(PRICE_FILE, error =>
            logger.error({ err: error }, 'bundled pricing crashed'),
          )
        : undefined
    if (bundled) undo.push(() => bundled.close())
    const { fallbackMaxAgeMs } = config.outbound
    const pricingClient = (channels: OutboundChannels) => {
      const shelf = createPriceShelf({ fallbackMaxAgeMs, maxBytes: shelfBytes }, clock)
      const baseUrl = bundled?.baseUrl ?? config.outbound.baseUrl
      return new PricingClient(baseUrl, config.outbound, { channels, clock, shelf })
    }
    const client = pricingClient(channels.outbound)
    undo.push(() => client.close())
    const cacheOptions = { ...config.cache, maxBytes: config.cache.maxBytes - shelfBytes }
    const cache = new Cache(cacheOptions, { clock, channels: channels.cache })
    undo.push(() => cache.close())
    logger.info(config.cache.hotKeys, 'hot key thresholds')

    const loopClock = new LoopClock(clock, channels.lease.loopLag)
    undo.push(() => loopClock.stop())
    const outboxGauge = new OutboxGauge({ outbox: store.outbox, options: config.outbox, clock, onFault })
    undo.push(() => outboxGauge.close())
    const gate = new Gate(config.capacity, channels.admission, clock)

    const stageOver = (
      parts: { store: OrderStore; cache: Cache; client: Pick<PricingClient, 'fetch'> },
      apiKeys: ApiKeys,
      reports: Pick<Channels, 'http' | 'idempotency' | 'lease'>,
    ): Stage => ({
      leaseChannels: reports.lease,
      httpChannels: reports.http,
      routes: createRoutes({
        services: {
          store: parts.store,
          ledger: new Ledger(parts.store, reports.idempotency),
          pricing: { prices: cachedPrices(parts.cache, parts.client), commitReserveMs },
          reads: orderReads(parts.cache, parts.store),
          clock,
          commitReserveMs,
        },
        options: config.http,
      }),
      apiKeys,
    })
    // The warm-up has parts of its own where they remember or report anything: it leaves nothing, and is no traffic.
    const rehearsal = new Rehearsal()
    const unheard = allChannels()
    unheard.http.fault.subscribe(fault => channels.http.fault.publish(fault))
    const rehearsalCache = new Cache(cacheOptions, { clock, channels: unheard.cache })
    const rehearsalClient = pricingClient(unheard.outbound)
    const endRehearsal = () => {
      rehearsal.close()
      rehearsalCache.close()
      return rehearsalClient.close()
    }
    undo.push(endRehearsal)

    const warmUp = new WarmUp(clock, channels.lifecycle.warmUpFailed)
    const lifecycle = new Lifecycle(
      [
        { name: 'store', degraded: () => store.degraded() },
        { name: 'outbox', degraded: () => outboxGauge.degraded(), advisory: true },
        warmUp,
      ],
      clock,
      channels.lifecycle.phase,
      startedMs,
    )
    const api = createApiServer({
      options: config.http,
      requestBudgetMs,
      gate,
      loopClock,
      clock,
      isDraining: () => lifecycle.phase === 'draining',
      readiness: () => lifecycle.readiness(),
      refusal: () => {
        const { phase } = lifecycle
        if (phase === 'ready' || (phase === 'draining' && lifecycle.wasReady)) return undefined
        return new Problem(phase === 'draining' || phase === 'stopped' ? 'shutting-down' : 'warming-up')
      },
      stage: stageOver({ store, cache, client }, new ApiKeys(config.auth.keys), channels),
      rehearses: req => lifecycle.phase === 'warming' && rehearsal.admits(req),
      rehearsal: stageOver(
        {
          store: rehearsedStore(store),
          cache: rehearsalCache,
          client: rehearsedClient(rehearsalClient),
        },
        rehearsal.apiKeys,
        unheard,
      ),
    })

    const sink = openSink(config.outbox, { clock, writeLine: deps.writeEvent })
    undo.push(() => sink.close())
    const commitRate = new CommitRate(clock)
    const loopLoad = new LoopLoad(clock)
    const relay = new Relay({
      outbox: store.outbox,
      sink,
      options: config.outbox,
      channels: channels.outbox,
      clock,
      isBusy: () =>
        loopLoad.share() > BUSY_SHARE &&
        commitRate.perSecond() > config.capacity.targetRps &&
        outboxGauge.oldestAgeSeconds < MOST_LAG_SECONDS,
      random: Math.random,
    })
    undo.push(() => relay.close())
    channels.store.committed.subscribe(({ batchSize }) => {
      commitRate.committed(batchSize)
      relay.wake()
    })
    const { sweepBatch: limit, sweepIntervalMs: intervalMs, retentionHours } = config.idempotency
    const sweeps = [
      { purge: (ask: PurgeAsk) => store.purgeKeys(ask), hours: retentionHours },
      {
        purge: (ask: PurgeAsk) => store.outbox.purgeDelivered(ask),
        hours: config.outbox.deliveredRetentionHours,
      },
    ].map(
      ({ purge, hours }) =>
        new Sweep({ purge, retentionMs: hours * HOUR_MS, limit, intervalMs, clock, onFault }),
    )
    for (const sweep of sweeps) undo.push(() => sweep.close())

    const registry = createMetrics(channels, {
      inFlight: () => gate.inFlight,
      cache,
      outbox: outboxGauge,
      ready: () => lifecycle.readiness().status === 'ready',
    })
    const admin = createAdminServer({
      adminToken: config.http.adminToken,
      metrics: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
      config: deps.shownConfig,
      invalidate: tags => cache.invalidate(tags),
      deadEvents: new DeadLetters(store.outbox, clock, () => relay.wake()),
      onFault: (error, traceId) => channels.http.fault.publish({ error, traceId }),
    })

    lifecycle.become('warming')
    const { host, adminHost } = config.http
    const port = await listen(api.server, host, config.http.port)
    undo.push(
      () => api.server.closeAllConnections(),
      () => api.server.close(),
    )
    const adminPort = await listen(admin, adminHost, config.http.adminPort)
    undo.push(
      () => admin.closeAllConnections(),
      () => admin.close(),
    )
    logger.info({ host, port, adminHost, adminPort }, 'listening')

    const stopping = new AbortController()
    const warmedUp = warmUp
      .run(config.lifecycle.warmUp ? rehearsal.steps(host, port) : [], stopping.signal)
      .then(async isWarm => {
        await endRehearsal()
        if (!isWarm || stopping.signal.aborted) return false
        lifecycle.become('ready')
        logger.info({ port, adminPort }, 'ready')
        outboxGauge.start()
        for (const sweep of sweeps) sweep.start()
        relay.start()
        return true
      })

    return {
      port,
      adminPort,
      warmedUp,
      stop: async () => {
        stopping.abort()
        await warmedUp
        lifecycle.become('draining')
        const dropped = await drain(drainable(api), config.lifecycle, clock)
        channels.lifecycle.drained.publish({ dropped })
        loopClock.stop()
        // A quarter of the whole shutdown at most: what it cannot give back comes again by itself.
        const handingBack = relay.close(config.lifecycle.shutdownTimeoutSeconds * 250)
        await Promise.all([handingBack, ...[outboxGauge, ...sweeps].map(part => part.close())])
        await sink.close()
        await client.close()
        await bundled?.close()
        // The store before the cache: what it still commits must be put out of date there.
        await store.close()
        cache.close()
        lifecycle.become('stopped')
        admin.closeAllConnections()
        admin.close()
        return dropped
      },
    }
  }
}

const HOUR_MS = 3_600_000
// Of the event loop. Measured on two cores with the relay at full speed: 0.55 at 1,500 orders/s, 0.65 at 2,500; at the
// 11,500 that are the most, 0.7 to 0.9.
const BUSY_SHARE = 0.55
// Orders come first, but not for ever: what is announced later still is of little use to anybody.
const MOST_LAG_SECONDS = 10
