import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { admissionChannels, Gate } from './admission/index.ts'
import { Cache, cacheChannels } from './cache/index.ts'
import type { Config } from './config/index.ts'
import { Problem } from './errors/index.ts'
import { ApiKeys, createAdminServer, createApiServer, createRoutes, httpChannels } from './http/index.ts'
import { idempotencyChannels, Ledger } from './idempotency/index.ts'
import { LoopClock, leaseChannels } from './lease/index.ts'
import { drain, Lifecycle, lifecycleChannels } from './lifecycle/index.ts'
import { orderReads } from './orders/index.ts'
import { outboundChannels, PricingClient } from './outbound/index.ts'
import { CommitRate, OutboxGauge, openSink, outboxChannels, Relay } from './outbox/index.ts'
import { type BundledPricing, cachedPrices, createPriceShelf, startBundledPricing } from './pricing/index.ts'
import { type Clock, LoopLoad, Periodic } from './runtime/index.ts'
import { openStore, type Store, Sweep, storeChannels } from './store/index.ts'
import { type Channels, createMetrics, logChannels } from './telemetry/index.ts'

const PRICE_FILE = fileURLToPath(new URL('../config/prices.json', import.meta.url))

/** A running instance. */
export interface App {
  readonly port: number
  readonly adminPort: number
  /** Lets go of everything in order; resolves with the number of requests that had to be dropped. */
  stop(): Promise<number>
}

export interface AppDeps {
  readonly clock: Clock
  readonly logger: Logger
  /** The configuration with its secrets hidden, for the admin listener. */
  readonly shownConfig: object
}

/**
 * The composition root: the only place that knows every part. Builds from the bottom up, listens, and turns ready;
 * `stop` takes it down the other way round.
 */
export async function startApp(config: Config, deps: AppDeps): Promise<App> {
  const { clock, logger } = deps
  const channels: Channels = {
    admission: admissionChannels(),
    cache: cacheChannels(),
    http: httpChannels(),
    idempotency: idempotencyChannels(),
    lease: leaseChannels(),
    lifecycle: lifecycleChannels(),
    outbound: outboundChannels(),
    outbox: outboxChannels(),
    store: storeChannels(),
  }
  logChannels(logger, config.log, channels)

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
    const client = new PricingClient(bundled?.baseUrl ?? config.outbound.baseUrl, config.outbound, {
      channels: channels.outbound,
      clock,
      shelf: createPriceShelf(
        { fallbackMaxAgeMs: config.outbound.fallbackMaxAgeMs, maxBytes: shelfBytes },
        clock,
      ),
    })
    undo.push(() => client.close())
    const cache = new Cache(
      { ...config.cache, maxBytes: config.cache.maxBytes - shelfBytes },
      { clock, channels: channels.cache },
    )
    undo.push(() => cache.close())
    logger.info(config.cache.hotKeys, 'hot key thresholds')

    const loopClock = new LoopClock(clock, channels.lease.loopLag)
    undo.push(() => loopClock.stop())
    const onFault = (error: unknown) => logger.error({ err: error }, 'fault')
    const outboxGauge = new OutboxGauge({ outbox: store.outbox, options: config.outbox, clock, onFault })
    undo.push(() => outboxGauge.close())
    const gate = new Gate(config.capacity, channels.admission, clock)
    const lifecycle = new Lifecycle(
      [
        { name: 'store', degraded: () => store.degraded() },
        { name: 'outbox', degraded: () => outboxGauge.degraded(), advisory: true },
      ],
      clock,
      channels.lifecycle.phase,
    )
    const server = createApiServer({
      options: config.http,
      requestBudgetMs,
      gate,
      loopClock,
      reporting: { clock, leaseChannels: channels.lease, httpChannels: channels.http },
      isDraining: () => lifecycle.phase === 'draining',
      readiness: () => lifecycle.readiness(),
      refusal: () => {
        if (lifecycle.phase === 'ready' || lifecycle.phase === 'draining') return undefined
        return new Problem(lifecycle.phase === 'stopped' ? 'shutting-down' : 'warming-up')
      },
      routes: createRoutes({
        services: {
          store,
          ledger: new Ledger(store, channels.idempotency),
          pricing: { prices: cachedPrices(cache, client), commitReserveMs },
          reads: orderReads(cache, store),
          clock,
          commitReserveMs,
        },
        apiKeys: new ApiKeys(config.auth.keys),
        options: config.http,
      }),
    })
    const sink = openSink(config.outbox, { clock, writeLine: line => logger.info(line, 'event') })
    undo.push(() => sink.close())
    const commitRate = new CommitRate(clock)
    const loopLoad = new LoopLoad(clock)
    const relay = new Relay({
      outbox: store.outbox,
      sink,
      options: config.outbox,
      channels: channels.outbox,
      clock,
      isBusy: () => loopLoad.share() > BUSY_SHARE && commitRate.perSecond() > config.capacity.targetRps,
      random: Math.random,
    })
    undo.push(() => relay.close())
    channels.store.committed.subscribe(({ batchSize }) => {
      commitRate.committed(batchSize)
      relay.wake()
    })
    const sweeps = sweepsOf(store, config).map(
      sweep =>
        new Periodic({
          clock,
          intervalMs: config.idempotency.sweepIntervalMs,
          pauseMs: SWEEP_PAUSE_MS,
          step: () => sweep.step(clock.wallMs()),
          onFault,
        }),
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
      deadEvents: deadEvents(store, clock, () => relay.wake()),
      onFault: (error, traceId) => channels.http.fault.publish({ error, traceId }),
    })

    lifecycle.become('warming')
    const port = await listen(server, config.http.host, config.http.port)
    undo.push(
      () => server.closeAllConnections(),
      () => server.close(),
    )
    const adminPort = await listen(admin, config.http.adminHost, config.http.adminPort)
    undo.push(
      () => admin.closeAllConnections(),
      () => admin.close(),
    )
    logger.info({ host: config.http.host, port, adminHost: config.http.adminHost, adminPort }, 'listening')
    lifecycle.become('ready')
    logger.info({ port, adminPort }, 'ready')
    outboxGauge.start()
    for (const sweep of sweeps) sweep.start()
    relay.start()

    return {
      port,
      adminPort,
      stop: async () => {
        lifecycle.become('draining')
        const dropped = await drain(drainable(server, gate, channels), config.lifecycle, clock)
        channels.lifecycle.drained.publish({ dropped })
        loopClock.stop()
        await Promise.all([relay, outboxGauge, ...sweeps].map(part => part.close()))
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

/** Of keys and of delivered events. */
function sweepsOf(store: Store, { idempotency, outbox }: Config): Sweep[] {
  const limit = idempotency.sweepBatch
  return [
    new Sweep(ask => store.purgeKeys(ask), idempotency.retentionHours * HOUR_MS, limit),
    new Sweep(ask => store.outbox.purgeDelivered(ask), outbox.deliveredRetentionHours * HOUR_MS, limit),
  ]
}

function deadEvents({ outbox }: Store, clock: Clock, wake: () => void) {
  return {
    list: async (page: { limit: number; after: number }) => {
      const found = await outbox.findDead(page, AbortSignal.timeout(ADMIN_LIMIT_MS))
      if (found.kind !== 'found') throw new Problem('store-unavailable')
      return found.value
    },
    redrive: async (ids: readonly string[] | 'all') => {
      const count = await outbox.redrive(ids, clock.wallMs())
      if (count === undefined) throw new Problem('store-unavailable')
      wake()
      return count
    },
  }
}

// Some ten steps for each commit of a busy second, so that orders see little of it.
const SWEEP_PAUSE_MS = 20
const HOUR_MS = 3_600_000
// Of the event loop. Measured on two cores with the relay at full speed: 0.55 at 1,500 orders/s, 0.65 at 2,500; at the
// 11,500 that are the most, 0.7 to 0.9.
const BUSY_SHARE = 0.65
const ADMIN_LIMIT_MS = 5_000

function drainable(server: Server, gate: Gate, channels: Channels) {
  return {
    stopListening: () => void server.close(),
    cutConnections: () => server.closeAllConnections(),
    inFlight: () => gate.inFlight,
    onEnded: (listener: () => void) => channels.http.ended.subscribe(listener),
  }
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
