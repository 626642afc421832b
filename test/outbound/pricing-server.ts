import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

/** What one request brought. */
export interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: { currency: string; skus: string[] }
  /** Resolves once its connection is gone or its answer is out. */
  readonly closed: Promise<unknown>
}

/** A pricing service on loopback that answers as `answer` does: nothing, if it does nothing. */
export async function pricingServer(answer: (res: ServerResponse, received: Received) => void) {
  const received: Received[] = []
  const server = createServer((req, res) => {
    const closed = once(res, 'close')
    json(req).then(
      body => {
        const one = { url: req.url ?? '', headers: req.headers, body: body as Received['body'], closed }
        received.push(one)
        answer(res, one)
      },
      // The caller may give up before its body is whole.
      () => res.destroy(),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Answers 200 with `body`, an object as JSON. */
export function say(res: ServerResponse, body: object | string, headers: Record<string, string> = {}): void {
  res.writeHead(200, { 'content-type': 'application/json', ...headers })
  res.end(typeof body === 'string' ? body : JSON.stringify(body))
}
