/**
 * The one table of what can go wrong, as a caller sees it. The problem documents, the pages under `/problems`
 * and the status table of the README are made from it, and a test holds it against the contract.
 */
export interface CodeEntry {
  readonly status: number
  readonly title: string
  /** The default `detail`: what happened, in words that reveal nothing internal. */
  readonly detail: string
  /** What the caller should do about it. */
  readonly action: string
}

export const CODES = {
  'malformed-request': {
    status: 400,
    title: 'Malformed request',
    detail: 'The request is not valid HTTP.',
    action: 'Correct the client; the request cannot succeed as it is.',
  },
  'malformed-json': {
    status: 400,
    title: 'Malformed JSON',
    detail: 'The body is not one well-formed JSON object in UTF-8 with distinct member names.',
    action: 'Correct the body; the request cannot succeed as it is.',
  },
  'validation-failed': {
    status: 400,
    title: 'Validation failed',
    detail: 'The request is well-formed but breaks its schema; see errors.',
    action: 'Correct each place that errors names.',
  },
  'unknown-sku': {
    status: 400,
    title: 'Unknown SKU',
    detail: 'The price list has no price for an ordered SKU in this currency; see errors.',
    action: 'Order SKUs that exist in the currency of the order.',
  },
  'idempotency-key-missing': {
    status: 400,
    title: 'Idempotency key missing',
    detail: 'This operation needs an Idempotency-Key header.',
    action: 'Send a key of your own making, and the same one with every retry of the same request.',
  },
  'idempotency-key-invalid': {
    status: 400,
    title: 'Idempotency key invalid',
    detail:
      'The Idempotency-Key header must be one key of 1 to 255 printable ASCII characters, quoted or bare.',
    action: 'Send one valid key.',
  },
  unauthenticated: {
    status: 401,
    title: 'Unauthenticated',
    detail: 'No valid API key came with the request.',
    action: 'Send Authorization: Bearer with a valid key.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    detail: 'The API key lacks the scope that this operation needs.',
    action: 'Use a key that has the scope.',
  },
  'not-found': {
    status: 404,
    title: 'Not found',
    detail: 'There is nothing here that this key may see.',
    action: 'Check the address.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    detail: 'This address does not answer that method; see the Allow header.',
    action: 'Use a method from the Allow header.',
  },
  'request-timeout': {
    status: 408,
    title: 'Request timeout',
    detail: 'The request did not arrive whole in time.',
    action: 'Send the request again, whole.',
  },
  'idempotency-conflict': {
    status: 409,
    title: 'Idempotency conflict',
    detail: 'This idempotency key has already been used for a different request.',
    action: 'Use a new key for a new request; repeat the first request exactly to see its answer.',
  },
  'order-state-conflict': {
    status: 409,
    title: 'Order state conflict',
    detail: 'The order is in a state that does not allow this.',
    action: 'Read the order; what was asked for may already be so.',
  },
  'payload-too-large': {
    status: 413,
    title: 'Payload too large',
    detail: 'The body is larger than this API takes.',
    action: 'Send a smaller body.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported media type',
    detail: 'The body must be application/json in UTF-8 without a content encoding.',
    action: 'Send application/json.',
  },
  'concurrency-limit': {
    status: 429,
    title: 'Concurrency limit reached',
    detail: 'Every place is taken; the request was refused before any work was done.',
    action: 'Wait for Retry-After, then retry with the same key.',
  },
  'headers-too-large': {
    status: 431,
    title: 'Header fields too large',
    detail: 'The header section is larger than this API takes.',
    action: 'Send fewer or smaller headers.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    detail: 'Something failed on our side.',
    action: 'Retry with the same key; if it goes on, report the trace id.',
  },
  'pricing-unavailable': {
    status: 503,
    title: 'Pricing unavailable',
    detail: 'The pricing service does not answer usefully at the moment; nothing was stored.',
    action: 'Wait for Retry-After, then retry with the same key.',
  },
  'store-unavailable': {
    status: 503,
    title: 'Store unavailable',
    detail: 'The store cannot be used at the moment; nothing was acknowledged.',
    action: 'Wait for Retry-After, then retry with the same key.',
  },
  'warming-up': {
    status: 503,
    title: 'Warming up',
    detail: 'This instance is not ready yet.',
    action: 'Wait for Retry-After, or use another instance.',
  },
  'shutting-down': {
    status: 503,
    title: 'Shutting down',
    detail: 'This instance takes no new requests.',
    action: 'Retry on another instance.',
  },
  'budget-exhausted': {
    status: 504,
    title: 'Budget exhausted',
    detail:
      'What the request needed did not come within the time that its budget has for it; we stopped waiting.',
    action: 'Retry with the same key: that is safe whatever committed says.',
  },
} as const satisfies Record<string, CodeEntry>

export type Code = keyof typeof CODES
