import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A pricing service for the bench, in a process of its own: counts its calls and takes as long as it is told.
 * `PUT /behaviour` with `{ "minMs", "maxMs", "slowShare", "slowMs", "status" }` sets it and starts the count anew;
 * `GET /calls` gives the count.
 */
interface Behaviour {
  readonly minMs: number
  readonly maxMs: number
  readonly slowShare: number
  readonly slowMs: number
  readonly status: number
}

let behaviour: Behaviour = { minMs: 0, maxMs: 0, slowShare: 0, slowMs: 0, status: 200 }
let calls = 0

const server = createServer((req, res) => {
  const chunks: Buffer[] = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', () => {
    if (req.url === '/calls') return void res.end(String(calls))
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
    if (req.url === '/behaviour') {
      behaviour = { ...behaviour, ...(body as Partial<Behaviour>) }
      calls = 0
      return void res.end()
    }
    calls++
    const { minMs, maxMs, slowShare, slowMs, status } = behaviour
    const delayMs = Math.random() < slowShare ? slowMs : minMs + Math.random() * (maxMs - minMs)
    const { skus } = body as { skus: string[] }
    const answer = { prices: skus.map(sku => ({ sku, unitPrice: 100 })), unknown: [] }
    setTimeout(() => {
      res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    }, delayMs)
  })
})
// Outlives the pauses between the parts of a bench.
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
