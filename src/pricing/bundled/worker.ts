import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/**
 * The bundled pricing service: answers `POST /v1/prices:batch` from a price list in a file, over real HTTP, on a
 * loopback port of its own and a thread of its own, so that it shares no event loop with the API it serves.
 */
type PriceFile = Record<string, Record<string, number>>

const priceFile = JSON.parse(readFileSync((workerData as { file: string }).file, 'utf8')) as PriceFile
const prices = new Map(
  Object.entries(priceFile).map(([currency, list]) => [currency, new Map(Object.entries(list))]),
)

const MAX_REQUEST_BYTES = 65_536

const server = createServer((req, res) => {
  if (req.method !== 'POST' || req.url !== '/v1/prices:batch') return answer(res, 404, {})
  readBody(req)
    .then(priceBatch)
    .then(
      batch => answer(res, 200, batch),
      () => answer(res, 400, {}),
    )
})

function priceBatch(body: string) {
  const { currency, skus } = JSON.parse(body) as { currency: string; skus: string[] }
  const list = prices.get(currency)
  const known = skus.flatMap(sku => {
    const unitPrice = list?.get(sku)
    return unitPrice === undefined ? [] : [{ sku, unitPrice }]
  })
  return { prices: known, unknown: skus.filter(sku => !list?.has(sku)) }
}

async function readBody(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_REQUEST_BYTES) throw new RangeError('too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function answer(res: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  res.end(text)
}

server.listen(0, '127.0.0.1', () => {
  parentPort?.postMessage({ port: (server.address() as AddressInfo).port })
})
