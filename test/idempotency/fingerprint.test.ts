import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type OrderRequest, orderRequestSchema } from '../../src/domain/index.ts'
import { fingerprint } from '../../src/idempotency/index.ts'
import { anyRequest } from '../support/any-request.ts'

const request = anyRequest(6, fc.string({ minLength: 1, maxLength: 40 }))

/** The same value with the members of every object the other way round. */
function reversed<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(reversed) as Value
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([key, member]) => [key, reversed(member)])
  return Object.fromEntries(members.reverse()) as Value
}

describe('a fingerprint', () => {
  test('does not see field order or white space', () => {
    fc.assert(
      fc.property(request, fc.constantFrom(0, 2, '\t'), (request, space) => {
        const other = JSON.parse(JSON.stringify(reversed(request), null, space)) as OrderRequest
        expect(fingerprint(other)).toBe(fingerprint(request))
      }),
    )
  })

  test('differs wherever two requests differ', () => {
    const canonical = (value: OrderRequest) => JSON.stringify(sorted(value))
    fc.assert(
      fc.property(request, request, (one, other) => {
        fc.pre(canonical(one) !== canonical(other))
        expect(fingerprint(one)).not.toBe(fingerprint(other))
      }),
    )
  })

  test('differs for each single changed value, added or lost member, and order of items', () => {
    fc.assert(
      fc.property(request, fc.nat(), (request, at) => {
        const { items, reference } = request
        const index = at % items.length
        const withItem = (change: object) =>
          items.map((item, place) => (place === index ? { ...item, ...change } : item))
        const { reference: _, ...without } = request
        const changed: object[] = [
          { ...request, customerId: `${request.customerId}x` },
          { ...request, currency: request.currency === 'USD' ? 'EUR' : 'USD' },
          { ...request, items: withItem({ quantity: (items[index]?.quantity ?? 0) + 1 }) },
          { ...request, items: withItem({ sku: `${items[index]?.sku}x` }) },
          { ...request, items: [...items, { sku: 'one-more', quantity: 1 }] },
          { ...request, reference: `${reference ?? ''} ` },
          ...(reference === undefined ? [] : [without]),
          ...(items.length > 1 ? [{ ...request, items: [...items].reverse() }] : []),
        ]
        const prints = new Set([request, ...changed].map(fingerprint))
        expect(prints.size).toBe(changed.length + 1)
      }),
    )
  })

  test('is the SHA-256 of the RFC 8785 form', () => {
    const request = orderRequestSchema.parse({
      reference: '€ "q" \\',
      items: [{ quantity: 2, sku: 'B' }],
      currency: 'USD',
      customerId: 'c',
    })
    const canonical =
      '{"currency":"USD","customerId":"c","items":[{"quantity":2,"sku":"B"}],"reference":"€ \\"q\\" \\\\"}'
    expect(fingerprint(request)).toBe(createHash('sha256').update(canonical).digest('hex'))
  })
})

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([key, member]) => [key, sorted(member)] as const)
  return Object.fromEntries(members.sort(([one], [other]) => (one < other ? -1 : 1)))
}
