import type { IncomingMessage } from 'node:http'
import { Problem } from '../errors/index.ts'

/**
 * Reads a request's body, at most `limitBytes`, and refuses as soon as it is clear that it will: by the announced
 * length, or with the byte that is too many. What still comes is read and thrown away, so that the connection
 * lives on. (body-parser answers only after the last byte, which a client may never send.)
 *
 * Throws `payload-too-large`. Never settles when the client hangs up: the exchange has ended then.
 */
export function readBody(req: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const refuse = () => {
      req.off('data', take).off('end', finish).resume()
      reject(new Problem('payload-too-large'))
    }
    const chunks: Buffer[] = []
    let bytes = 0
    const take = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limitBytes) return refuse()
      chunks.push(chunk)
    }
    const finish = () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))
    if (Number(req.headers['content-length'] ?? 0) > limitBytes) return refuse()
    req.on('data', take)
    req.on('end', finish)
    // A client that hangs up is told apart by its exchange; unheard, the error would end the process.
    req.on('error', () => undefined)
  })
}
