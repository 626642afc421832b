import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { admissionChannels, Gate } from '../../src/admission/index.ts'
import type { Problem } from '../../src/errors/index.ts'
import type { RequestEnded } from '../../src/http/channels.ts'
import { ApiKeys, createApiServer, createRoutes, httpChannels, Rehearsal } from '../../src/http/index.ts'
import { authOptions, httpOptions } from '../../src/http/options.ts'
import { LoopClock, leaseChannels } from '../../src/lease/index.ts'
import { type Clock, systemClock } from '../../src/runtime/index.ts'
import { orderServices } from '../orders/orders-context.ts'

/** The whole HTTP layer on loopback, over a store in memory and a stub of pricing. */
export async function listening({ clock = systemClock as Clock, http = {} as object } = {}) {
  const { contextOf, store, pricing } = orderServices()
  const channels = httpChannels()
  const ended: RequestEnded[] = []
  const next = Promise.withResolvers<RequestEnded>()
  channels.ended.subscribe(message => {
    ended.push(message)
    next.resolve(message)
  })
  const lease = leaseChannels()
  const phase: { draining: boolean; refusal: Problem | undefined } = { draining: false, refusal: undefined }
  const rehearsal = new Rehearsal()
  const gate = new Gate({ maxConcurrent: 60 }, admissionChannels(), systemClock)
  const loopClock = new LoopClock(systemClock, lease.loopLag)
  const options = httpOptions.parse({ bodyLimitBytes: 2_048, ...http })
  const { server, inProgress } = createApiServer({
    options,
    requestBudgetMs: 20_000,
    gate,
    loopClock,
    clock,
    isDraining: () => phase.draining,
    readiness: () => ({ status: 'ready', phase: 'ready', checks: {} }),
    refusal: () => phase.refusal,
    stage: {
      leaseChannels: lease,
      httpChannels: channels,
      routes: createRoutes({ services: contextOf().services, options }),
      apiKeys: new ApiKeys(authOptions.parse({}).keys),
    },
    rehearses: req => phase.refusal !== undefined && rehearsal.admits(req),
    rehearsal: {
      leaseChannels: leaseChannels(),
      httpChannels: httpChannels(),
      routes: createRoutes({ services: contextOf().services, options }),
      apiKeys: rehearsal.apiKeys,
    },
  })
  server.listen(0, '127.0.0.1')
  onTestFinished(() => {
    rehearsal.close()
    loopClock.stop()
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, server, inProgress, store, pricing, gate, phase, rehearsal, ended, firstEnded: next.promise }
}
