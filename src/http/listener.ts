import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ApiServer } from './server.ts'

/** Resolves with the port once it listens; 0 asks for a free one. */
export async function listen(server: Server, host: string, port: number): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A listener and the requests behind it, in the shape in which they are drained. */
export function drainable({ server, inProgress, onEnded }: ApiServer) {
  return {
    stopListening: () => void server.close(),
    cutConnections: () => server.closeAllConnections(),
    inFlight: inProgress,
    onEnded,
  }
}
