import type { AdmissionChannels } from '../admission/channels.ts'
import type { CacheChannels } from '../cache/channels.ts'
import type { HttpChannels } from '../http/channels.ts'
import type { IdempotencyChannels } from '../idempotency/channels.ts'
import type { LeaseChannels } from '../lease/channels.ts'
import type { LifecycleChannels } from '../lifecycle/channels.ts'
import type { OutboundChannels } from '../outbound/channels.ts'
import type { OutboxChannels } from '../outbox/channels.ts'
import type { StoreChannels } from '../store/channels.ts'

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
