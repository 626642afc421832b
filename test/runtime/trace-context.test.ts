import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { traceFrom } from '../../src/runtime/index.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT_ID = '00f067aa0ba902b7'
const VALID = `00-${TRACE_ID}-${PARENT_ID}-01`
const OURS = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]$/

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
const nonZero = (length: number) => hex(length).filter(digits => /[^0]/.test(digits))
/** Of the flags only the sampled bit goes out. */
const sampled = (flags: string) => `0${Number.parseInt(flags, 16) % 2}`
const futureVersion = hex(2).filter(version => version !== '00' && version !== 'ff')

describe('a valid traceparent', () => {
  test('goes on: the same trace, the same sampling, a span of our own', () => {
    fc.assert(
      fc.property(nonZero(32), nonZero(16), hex(2), (traceId, parentId, flags) => {
        const trace = traceFrom(`00-${traceId}-${parentId}-${flags}`)
        expect(trace.traceId).toBe(traceId)
        expect(trace.traceparent).toMatch(OURS)
        expect(trace.traceparent.startsWith(`00-${traceId}-`)).toBe(true)
        expect(trace.traceparent.endsWith(`-${sampled(flags)}`)).toBe(true)
        expect(trace.traceparent).not.toContain(`-${parentId}-`)
      }),
    )
  })

  test('of a future version goes on as version 00, with or without what that version adds', () => {
    const addition = fc.oneof(fc.constant(''), fc.stringMatching(/^-[!-~]{0,40}$/))
    fc.assert(
      fc.property(
        futureVersion,
        nonZero(32),
        nonZero(16),
        hex(2),
        addition,
        (version, traceId, parentId, flags, added) => {
          const trace = traceFrom(`${version}-${traceId}-${parentId}-${flags}${added}`)
          expect(trace.traceId).toBe(traceId)
          expect(trace.traceparent).toMatch(OURS)
          expect(trace.traceparent.endsWith(`-${sampled(flags)}`)).toBe(true)
        },
      ),
    )
  })

  test.each([
    ['ff', '01'],
    ['fe', '00'],
    ['03', '01'],
    ['02', '00'],
  ])('with flags %s goes on with %s: bits that nobody has defined stop here', (flags, sent) => {
    const { traceparent } = traceFrom(`00-${TRACE_ID}-${PARENT_ID}-${flags}`)
    expect(traceparent.slice(-3)).toBe(`-${sent}`)
  })
})

describe('an invalid traceparent starts a new trace', () => {
  test.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${PARENT_ID}-01`],
    ['a parent id of zeros', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['version ff', `ff-${TRACE_ID}-${PARENT_ID}-01`],
    ['upper case in the trace id', `00-${TRACE_ID.toUpperCase()}-${PARENT_ID}-01`],
    ['upper case in the parent id', `00-${TRACE_ID}-${PARENT_ID.toUpperCase()}-01`],
    ['upper case in the version', `0A-${TRACE_ID}-${PARENT_ID}-01`],
    ['upper case in the flags', `00-${TRACE_ID}-${PARENT_ID}-0A`],
    ['something after version 00', `${VALID}-what-the-future-brings`],
    ['a dash after version 00', `${VALID}-`],
    ['a future version that goes on without a dash', `cc-${TRACE_ID}-${PARENT_ID}-01.more`],
    ['a short trace id', `00-${TRACE_ID.slice(1)}-${PARENT_ID}-01`],
    ['a long trace id', `00-${TRACE_ID}0-${PARENT_ID}-01`],
    ['a short parent id', `00-${TRACE_ID}-${PARENT_ID.slice(1)}-01`],
    ['one digit of flags', `00-${TRACE_ID}-${PARENT_ID}-1`],
    ['no flags', `00-${TRACE_ID}-${PARENT_ID}`],
    ['a digit that is not hexadecimal', `00-${TRACE_ID.replace('4', 'g')}-${PARENT_ID}-01`],
    ['space before it', ` ${VALID}`],
    ['space after it', `${VALID} `],
    ['a line break after it', `${VALID}\n`],
    ['two headers joined', `${VALID}, ${VALID}`],
    ['underscores', VALID.replaceAll('-', '_')],
  ])('%s', (_, header) => {
    const trace = traceFrom(header)
    expect(trace.traceId).not.toBe(TRACE_ID)
    expect(trace.traceparent).toMatch(OURS)
    expect(trace.traceparent).toContain(trace.traceId)
  })

  test('whatever the header is, the answer is well-formed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 80 }), header => {
        const trace = traceFrom(header)
        expect(trace.traceparent).toMatch(OURS)
        expect(trace.traceparent.slice(3, 35)).toBe(trace.traceId)
      }),
    )
  })
})
