import { type AttemptParts, attempt } from '../../src/outbound/attempt.ts'
import type { PriceCall, PriceList } from '../../src/outbound/call.ts'
import { outboundChannels } from '../../src/outbound/index.ts'
import { outboundOptions } from '../../src/outbound/options.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

export const ATTEMPT_MS = 40

/** One attempt over a transport that answers when told, and listens to its signal only if it is `obedient`. */
export function launch(
  options: { leftMs: number; endedBy: PriceCall['endedBy']; obedient: boolean; claim?: () => boolean },
  clock = new VirtualClock(),
) {
  const channels = outboundChannels()
  const results: string[] = []
  let launched = 0
  channels.launched.subscribe(() => launched++)
  const late: string[] = []
  channels.attempt.subscribe(({ result }) => results.push(result))
  channels.late.subscribe(({ kind }) => late.push(kind))
  const sent: { id: string; traceparent: string; leftMs: number; signal: AbortSignal }[] = []
  const exchange = Promise.withResolvers<PriceList>()
  const transport: AttemptParts['transport'] = {
    send: (_call, signal, about) => {
      sent.push({ ...about, signal })
      if (options.obedient) signal.addEventListener('abort', () => exchange.reject(signal.reason))
      return exchange.promise
    },
  }
  const request = new AbortController()
  const call = {
    currency: 'USD',
    skus: ['SKU-1'],
    endsAtMs: clock.nowMs() + options.leftMs,
    endedBy: options.endedBy,
    signal: request.signal,
    traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
  }
  const start = () =>
    attempt({ transport, options: outboundOptions.parse({ attemptMs: ATTEMPT_MS }), channels, clock })({
      call,
      signal: request.signal,
      claim: options.claim ?? (() => true),
    }).then(
      () => 'won' as const,
      (error: unknown) => error,
    )
  return { clock, request, call, exchange, results, late, sent, start, launched: () => launched }
}
