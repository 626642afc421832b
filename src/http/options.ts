import { createHash } from 'node:crypto'
import { z } from 'zod'
import { group, text, wholeNumber } from '../runtime/index.ts'

const PORT = { unit: 'port', min: 0, max: 65_535 }
const HOST = /^[A-Za-z0-9_.:%-]+$/

export const httpOptions = group({
  host: text({
    is: 'Address on which the API listens.',
    default: '127.0.0.1',
    pattern: HOST,
    maxLength: 255,
    trade: 'Off loopback the demo key is refused.',
  }),
  port: wholeNumber({ is: 'Port of the API; 0 takes a free one.', ...PORT, default: 8080, trade: 'None.' }),
  adminHost: text({
    is: 'Address of the admin listener.',
    default: '127.0.0.1',
    pattern: HOST,
    maxLength: 255,
    trade: 'Off loopback everything there but `/metrics` needs `adminToken`.',
  }),
  adminPort: wholeNumber({
    is: 'Port of the admin listener; 0 takes a free one.',
    ...PORT,
    default: 9464,
    trade: 'None.',
  }),
  adminToken: z
    .string()
    .min(16)
    .max(256)
    .regex(/^[\x21-\x7e]+$/)
    .optional()
    .meta({
      is: 'Bearer token of the admin listener (`ADMIN_TOKEN`).',
      trade: 'Without one the admin listener stays on loopback.',
      secret: true,
    }),
  bodyLimitBytes: wholeNumber({
    is: 'Largest request body; a larger one is 413.',
    unit: 'bytes',
    default: 65_536,
    min: 1_024,
    max: 16_777_216,
    trade: 'The largest valid order takes 8 KB; higher only lets callers waste memory.',
  }),
  headersTimeoutMs: wholeNumber({
    is: 'How long a client may take to send its headers.',
    unit: 'ms',
    default: 10_000,
    min: 100,
    max: 600_000,
    trade: 'Lower frees sockets that never speak sooner.',
  }),
  requestTimeoutMs: wholeNumber({
    is: 'How long a client may take to send a whole request, answered or not.',
    unit: 'ms',
    default: 15_000,
    min: 100,
    max: 600_000,
    trade: 'Lower cuts slow uploads off; the answer itself is bounded by the budget.',
  }),
  responseTimeoutMs: wholeNumber({
    is: 'How long an answer may take to leave for a client that reads slowly; then its connection is cut.',
    unit: 'ms',
    default: 5_000,
    min: 50,
    max: 600_000,
    trade: 'Higher suits slower clients, each of which keeps a connection as long.',
  }),
  keepAliveTimeoutMs: wholeNumber({
    is: 'How long an idle connection is kept.',
    unit: 'ms',
    default: 76_000,
    min: 1_000,
    max: 600_000,
    trade:
      'Must outlive the idle time of the balancer in front (often 60 to 75 s), or it writes into a closing socket.',
  }),
})

export const SCOPES = ['orders:read', 'orders:write'] as const

const apiKeySchema = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/),
  tenant: z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .meta({ secret: true }),
  scopes: z.array(z.enum(SCOPES)).min(1),
  view: z.enum(['full', 'masked']).default('full'),
})

/** SHA-256 of the key `demo`, which may be used on loopback only. */
export const DEMO_KEY_SHA256 = createHash('sha256').update('demo').digest('hex')

export const authOptions = group({
  keys: z
    .array(apiKeySchema)
    .max(10_000)
    .default([
      {
        id: 'demo',
        tenant: 'demo',
        sha256: DEMO_KEY_SHA256,
        scopes: ['orders:read', 'orders:write'],
        view: 'full',
      },
    ])
    .meta({
      is: 'API keys: `id`, `tenant`, `sha256` of the key in lower-case hex, `scopes`, `view` (`full` or `masked`).',
      trade: 'The default holds the key `demo`, which is refused off loopback and in production.',
    }),
})

export type HttpOptions = z.output<typeof httpOptions>
export type ApiKey = z.output<typeof apiKeySchema>
export type Scope = (typeof SCOPES)[number]
