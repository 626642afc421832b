export { OutboundFailure, type OutboundFailureKind, type PriceList } from './call.ts'
export { type OutboundChannels, outboundChannels } from './channels.ts'
export { type PriceRequest, PricingClient } from './client.ts'
export { longestBackoffMs } from './retry.ts'
