import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A consumer that takes every event at once: what is left to measure is the relay. Prints its port. */
const server = createServer((req, res) => {
  req.resume().on('end', () => res.writeHead(204).end())
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
