import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { webhookSink } from '../../src/outbox/sinks/webhook.ts'
import type { OutboxEvent } from '../../src/store/index.ts'
import { never } from '../support/order-write.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** A request that reached a consumer. */
export interface Post {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Resolves once its answer is out or its connection gone. */
  readonly closed: Promise<unknown>
}

/** A consumer of webhooks on loopback that answers as `answer` does: nothing, if it does nothing. */
export async function consumer(answer: (res: ServerResponse, post: Post) => void = res => res.end()) {
  const posts: Post[] = []
  const sockets = { open: 0, opened: 0, mostOpen: 0 }
  let arrived = Promise.withResolvers<void>()
  const server = createServer((req, res) => {
    const closed = once(res, 'close')
    void text(req).then(
      body => {
        const post = { method: req.method ?? '', url: req.url ?? '', headers: req.headers, body, closed }
        posts.push(post)
        arrived.resolve()
        arrived = Promise.withResolvers()
        answer(res, post)
      },
      () => res.destroy(),
    )
  })
  const allGone = () => sockets.open === 0
  let gone = Promise.withResolvers<void>()
  server.on('connection', socket => {
    sockets.opened++
    sockets.mostOpen = Math.max(sockets.mostOpen, ++sockets.open)
    socket.on('close', () => {
      sockets.open--
      gone.resolve()
      gone = Promise.withResolvers()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}/hook?from=punctual`,
    posts,
    sockets,
    /** Resolves once `count` requests have arrived. */
    received: async (count: number) => {
      while (posts.length < count) await arrived.promise
    },
    /** Resolves once no connection is open. */
    gone: async () => {
      while (!allGone()) await gone.promise
    },
  }
}

/** A webhook sink on a virtual clock, pointed at `url`. */
export function webhookTo(
  url: string,
  choices: { timeoutMs?: number; allowPrivateNetworks?: boolean; maxConcurrent?: number } = {},
) {
  const { timeoutMs = 60_000, allowPrivateNetworks = true, maxConcurrent = 4 } = choices
  const clock = new VirtualClock()
  const sink = webhookSink({ url, secret: SECRET, timeoutMs, allowPrivateNetworks }, maxConcurrent, clock)
  onTestFinished(() => sink.close())
  return { clock, sink, deliver: (event = someEvent(), signal = never()) => sink.deliver(event, signal) }
}

/** An event; whatever is not chosen is valid. */
export function someEvent(choices: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    sequence: 1,
    id: '019b2d6e-0000-7000-8000-000000000001',
    type: 'order.created',
    subject: '019b2d6e-0000-7000-8000-000000000002',
    tenant: 'tenant-1',
    traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    atMs: Date.UTC(2026, 0, 1, 12, 0, 0, 5),
    json: '{"id":"019b2d6e-0000-7000-8000-000000000002","total":5}',
    attempts: 0,
    ...choices,
  }
}
