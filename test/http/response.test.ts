import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { writeResponse } from '../../src/http/response.ts'

describe('writeResponse', () => {
  const written = (status: number, body: string, closing = false) => {
    const seen: { headers?: string[]; body?: string | undefined } = {}
    const res = {
      writeHead: (_status: number, headers: string[]) => {
        seen.headers = headers
      },
      end: (body?: string) => {
        seen.body = body
      },
    }
    writeResponse(res as unknown as ServerResponse, status, ['ETag', '"v1"'], body, {
      traceId: 'abc',
      closing,
    })
    return seen
  }

  test('writeResponse gives the length in bytes, the trace, and the headers asked for', () => {
    expect(written(200, '"é€"')).toEqual({
      headers: ['ETag', '"v1"', 'X-Trace-Id', 'abc', 'Content-Length', '7'],
      body: '"é€"',
    })
  })

  test('writeResponse gives a 304 neither body nor length', () => {
    expect(written(304, '{}')).toEqual({ headers: ['ETag', '"v1"', 'X-Trace-Id', 'abc'], body: undefined })
  })

  test('writeResponse asks the client to let go of a connection that closes', () => {
    expect(written(200, '', true).headers).toEqual(expect.arrayContaining(['Connection', 'close']))
  })
})
