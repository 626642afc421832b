import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { Pool } from 'undici'
import type { Clock } from '../../runtime/index.ts'
import type { OutboxEvent } from '../../store/index.ts'
import { CLOUD_EVENT_TYPE, cloudEvent } from '../cloud-event.ts'
import { isPrivateAddress } from '../private-address.ts'
import { DELIVERED, type Delivery, type Sink } from './sink.ts'

export interface WebhookOptions {
  readonly url: string
  readonly secret: string
  readonly timeoutMs: number
  readonly allowPrivateNetworks: boolean
}

/**
 * Webhook: events as HTTP POSTs, CloudEvents 1.0 in structured mode, signed as Standard Webhooks. 2xx is delivered and
 * 410 refused for good; all else is a failure, redirects too, since whoever may redirect us could send events anywhere.
 * Answers are read to their end, which a delivery needs too, and thrown away: whoever breaks off in the middle may not
 * have taken the event. Connections are kept, `maxConcurrent` at most.
 *
 * Unless private networks are allowed, an address is judged when it is connected to: a name that resolves to another
 * address later is then no way around.
 */
export function webhookSink(options: WebhookOptions, maxConcurrent: number, clock: Clock): Sink {
  const url = new URL(options.url)
  const path = `${url.pathname}${url.search}`
  const signer = new Webhook(options.secret)
  const forbidden =
    !options.allowPrivateNetworks && isIP(bare(url.hostname)) > 0 && isPrivateAddress(bare(url.hostname))
  const pool = new Pool(url.origin, {
    connections: maxConcurrent,
    pipelining: 1,
    // One answer tells of one connection, whichever protocol the consumer would rather speak.
    allowH2: false,
    connect: {
      timeout: options.timeoutMs,
      ...(!options.allowPrivateNetworks && { lookup: publicLookup }),
    },
    headersTimeout: options.timeoutMs,
    bodyTimeout: options.timeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  })

  async function post(event: OutboxEvent, signal: AbortSignal): Promise<Delivery> {
    const body = cloudEvent(event)
    const at = new Date(clock.wallMs())
    const {
      statusCode,
      headers,
      body: answer,
    } = await pool.request({
      method: 'POST',
      path,
      headers: {
        'content-type': CLOUD_EVENT_TYPE,
        'user-agent': 'punctual',
        traceparent: event.traceparent,
        'webhook-id': event.id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
        'webhook-signature': signer.sign(event.id, at, body),
      },
      body,
      signal,
    })
    const ended = await drained(answer)
    if (statusCode >= 200 && statusCode < 300) {
      return ended ? DELIVERED : { kind: 'failed', reason: 'the answer of the consumer does not end' }
    }
    const reason = `the consumer answered ${statusCode}`
    if (statusCode === 410) return { kind: 'refused', reason }
    return { kind: 'failed', reason, retryAfterMs: retryAfterMs(headers['retry-after'], clock.wallMs()) }
  }

  return {
    deliver: async (event, signal) => {
      if (forbidden) return { kind: 'failed', reason: FORBIDDEN }
      const limit = new AbortController()
      const stop = () => limit.abort()
      const timer = clock.setTimer(stop, options.timeoutMs)
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      try {
        return await post(event, limit.signal)
      } catch (error) {
        if (limit.signal.aborted) return { kind: 'failed', reason: 'the consumer did not answer in time' }
        return { kind: 'failed', reason: reasonOf(error) }
      } finally {
        clock.clearTimer(timer)
        signal.removeEventListener('abort', stop)
      }
    },
    close: () => pool.destroy(),
  }
}

/** Reads an answer to its end and keeps nothing of it; false when the end is too far away. */
async function drained(answer: AsyncIterable<Uint8Array>): Promise<boolean> {
  let bytes = 0
  for await (const chunk of answer) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) return false
  }
  return true
}

/** Seconds or a date (RFC 9110, section 10.2.3); anything else asks for nothing. */
export function retryAfterMs(header: string | string[] | undefined, nowMs: number): number {
  if (typeof header !== 'string') return 0
  if (/^\d+$/.test(header)) return Number(header) * 1000
  // Date.parse alone finds a date in nearly anything, `-5` and `soon 2030` too.
  return HTTP_DATE.test(header) ? Math.max(0, Date.parse(header) - nowMs) || 0 : 0
}

/** As the system resolves, but without addresses of private networks. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '')
    const allowed = addresses.filter(({ address }) => !isPrivateAddress(address))
    const [first] = allowed
    if (first === undefined)
      return callback(Object.assign(new Error(FORBIDDEN), { code: FORBIDDEN_CODE }), '')
    if (options.all) callback(null, allowed)
    else callback(null, first.address, first.family)
  })
}

/** In words of ours: a driver's message may hold an address. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === FORBIDDEN_CODE) return FORBIDDEN
  return code === '' ? 'the consumer could not be reached' : `the consumer could not be reached (${code})`
}

function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

const FORBIDDEN = 'the target lies in a private network'
const FORBIDDEN_CODE = 'PRIVATE_NETWORK'
const HTTP_DATE = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/
// Far more than any consumer has to say.
const MAX_ANSWER_BYTES = 1_048_576
// Shorter than the 5 s after which a plain Node.js server closes an idle connection under our request.
const KEEP_ALIVE_MS = 4_000
