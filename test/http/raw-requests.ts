import { connect } from 'node:net'

export const BODY = '{"customerId":"c","currency":"USD","items":[{"sku":"A","quantity":1}]}'
export const JSON_HEADERS = { 'Content-Type': 'application/json' }
export const MIB = 1_048_576

export function request(
  method: string,
  target: string,
  headers: Record<string, string | number> = {},
  body = '',
): string {
  const all = { Host: 'x', Authorization: 'Bearer demo', ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

export function order(key: string, headers: Record<string, string | number> = {}): string {
  const all = { 'Idempotency-Key': key, 'Content-Length': BODY.length, ...JSON_HEADERS, ...headers }
  return request('POST', '/v1/orders', all, BODY)
}

export function statuses(said: string): number[] {
  return [...said.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))
}

/** Sends `bytes` and reads until `count` answers have come, or the server has closed the connection. */
export async function answers(port: number, count: number, bytes: string): Promise<number[]> {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  let said = ''
  for await (const chunk of socket) {
    said += chunk
    if (statuses(said).length >= count) break
  }
  return statuses(said)
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(resolve => setImmediate(resolve))
}
