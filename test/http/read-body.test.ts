import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readBody } from '../../src/http/read-body.ts'
import { promisesSettled } from '../support/virtual-clock.ts'

const LIMIT_BYTES = 100

/** A request whose body comes as the test writes it, read with a limit of 100 bytes. */
function reading(headers: Record<string, string> = {}) {
  const req = Object.assign(new PassThrough(), { headers })
  let settled = false
  const body = readBody(req as unknown as IncomingMessage, LIMIT_BYTES)
    .catch((error: unknown) => error)
    .finally(() => {
      settled = true
    })
  return { req, body, settled: () => settled }
}

describe('readBody', () => {
  test('gives the bytes as they came, in however many parts, up to the limit and not one more', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }), async parts => {
        const { req, body } = reading()
        for (const part of parts) req.write(part)
        req.end()
        const sent = Buffer.concat(parts)
        const read = await body
        if (sent.length <= LIMIT_BYTES) expect(sent.equals(read as Buffer)).toBe(true)
        else expect(read).toMatchObject({ code: 'payload-too-large', status: 413 })
      }),
    )
  })

  test('refuses with the byte that is too many, though the rest never comes', async () => {
    const { req, body, settled } = reading()
    req.write(Buffer.alloc(LIMIT_BYTES))
    await promisesSettled()
    expect(settled()).toBe(false)
    req.write(Buffer.alloc(1))
    expect(await body).toMatchObject({ code: 'payload-too-large' })
  })

  test('refuses what is announced as too long before a byte of it has come', async () => {
    const { body } = reading({ 'content-length': String(LIMIT_BYTES + 1) })
    expect(await body).toMatchObject({ code: 'payload-too-large' })
  })

  test('throws the rest of a refused body away, so that the connection can go on', async () => {
    const { req, body } = reading({ 'content-length': '1000000' })
    await body
    for (let parts = 0; parts < 100; parts++) req.write(Buffer.alloc(10_000))
    await new Promise(resolve => req.end(resolve))
    expect(req.readableLength).toBe(0)
  })

  test('neither settles nor falls over when the client hangs up in the middle', async () => {
    const { req, settled } = reading()
    req.write('{"customerId":')
    req.destroy(new Error('aborted'))
    await promisesSettled()
    await promisesSettled()
    expect(settled()).toBe(false)
  })
})
