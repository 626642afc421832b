import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { childSpan, traceFrom } from '../../src/runtime/index.ts'
import { GOOD, priced, TRACE_ID } from './priced-client.ts'
import { say } from './pricing-server.ts'

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
const nonZero = (length: number) => hex(length).filter(digits => /[^0]/.test(digits))

describe('what goes out to pricing', () => {
  test('is a span of its own in the same trace, with the same flags', () => {
    fc.assert(
      fc.property(nonZero(32), nonZero(16), hex(2), (traceId, parentId, flags) => {
        const parent = traceFrom(`00-${traceId}-${parentId}-${flags}`).traceparent
        const [version, sameTrace, spanId, sameFlags, ...more] = childSpan(parent).split('-')
        expect([version, sameTrace, sameFlags, ...more]).toEqual(['00', traceId, parent.slice(-2)])
        expect(spanId).toMatch(/^[0-9a-f]{16}$/)
        expect([parentId, parent.slice(36, 52)]).not.toContain(spanId)
        expect(childSpan(parent)).not.toBe(childSpan(parent))
      }),
    )
  })

  test.each(['00', '01'])('says %s of sampling, as the caller did, with every attempt', async flags => {
    let answers = 0
    const traceparent = `00-${TRACE_ID}-${'b'.repeat(16)}-${flags}`
    const { fetch, received } = await priced(
      res => (answers++ === 0 ? res.writeHead(500).end() : say(res, GOOD)),
      { traceparent },
    )
    await fetch()
    const sent = received.map(({ headers }) => headers.traceparent)
    expect(sent).toHaveLength(2)
    for (const one of sent) expect(one).toMatch(new RegExp(`^00-${TRACE_ID}-(?!b{16})[0-9a-f]{16}-${flags}$`))
    expect(sent[0]).not.toBe(sent[1])
  })
})
