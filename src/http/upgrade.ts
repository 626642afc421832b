import type { IncomingMessage } from 'node:http'

/**
 * The bytes of a request without its wish to change the protocol, and the bytes behind its head. A server may ignore
 * `Upgrade` (RFC 9110, section 7.8), but Node.js then drops whatever came in the same chunk behind the head: the body of
 * an order that curl sends with `--http2`, and every request that was pipelined.
 */
export function withoutUpgrade(req: IncomingMessage, behind: Buffer): Buffer {
  const { method, url, httpVersion, rawHeaders } = req
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.toLowerCase() !== 'upgrade') head += `${name}: ${rawHeaders[at + 1]}\r\n`
  }
  return Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), behind])
}
