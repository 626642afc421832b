import { type AdmissionChannels, admissionChannels } from '../admission/channels.ts'
import { type CacheChannels, cacheChannels } from '../cache/channels.ts'
import { type HttpChannels, httpChannels } from '../http/channels.ts'
import { type IdempotencyChannels, idempotencyChannels } from '../idempotency/channels.ts'
import { type LeaseChannels, leaseChannels } from '../lease/channels.ts'
import { type LifecycleChannels, lifecycleChannels } from '../lifecycle/channels.ts'
import { type OutboundChannels, outboundChannels } from '../outbound/channels.ts'
import { type OutboxChannels, outboxChannels } from '../outbox/channels.ts'
import { type StoreChannels, storeChannels } from '../store/channels.ts'

/** Everything there is to listen to. */
export interface Channels {
  readonly admission: AdmissionChannels
  readonly cache: CacheChannels
  readonly http: HttpChannels
  readonly idempotency: IdempotencyChannels
  readonly lease: LeaseChannels
  readonly lifecycle: LifecycleChannels
  readonly outbound: OutboundChannels
  readonly outbox: OutboxChannels
  readonly store: StoreChannels
}

/** A set of its own, to which nobody listens yet. */
export function allChannels(): Channels {
  return {
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
}
