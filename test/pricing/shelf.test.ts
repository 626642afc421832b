import { describe, expect, test } from 'vitest'
import { createPriceShelf } from '../../src/pricing/index.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

function shelved(fallbackMaxAgeMs = 1_000, maxBytes = 65_536) {
  const clock = new VirtualClock()
  return { clock, shelf: createPriceShelf({ fallbackMaxAgeMs, maxBytes }, clock) }
}

describe('the price shelf', () => {
  test('remembers the last price of a SKU in a currency, zero too, for fallbackMaxAgeMs', () => {
    const { clock, shelf } = shelved()
    shelf.set('USD', 'A', 1)
    clock.advance(600)
    shelf.set('USD', 'A', 0)
    shelf.set('EUR', 'A', 3)
    clock.advance(1_000)
    expect([shelf.get('USD', 'A'), shelf.get('EUR', 'A'), shelf.get('USD', 'B')]).toEqual([0, 3, undefined])
    clock.advance(1)
    expect(shelf.get('USD', 'A')).toBeUndefined()
  })

  test('forgets what it is told to, and only that', () => {
    const { shelf } = shelved()
    shelf.set('USD', 'A', 1)
    shelf.set('EUR', 'A', 2)
    shelf.delete('USD', 'A')
    shelf.delete('USD', 'never')
    expect([shelf.get('USD', 'A'), shelf.get('EUR', 'A')]).toEqual([undefined, 2])
  })

  test('with an age of 0 remembers nothing', () => {
    const { shelf } = shelved(0)
    shelf.set('USD', 'A', 1)
    expect(shelf.get('USD', 'A')).toBeUndefined()
    shelf.delete('USD', 'A')
    expect(shelf.get('USD', 'A')).toBeUndefined()
  })

  test('is bounded: the prices that were used last stay', () => {
    const { shelf } = shelved(1_000, 65_536)
    const skus = Array.from({ length: 10_000 }, (_, index) => `SKU-${index}`)
    for (const sku of skus) shelf.set('USD', sku, 1)
    const kept = skus.filter(sku => shelf.get('USD', sku) !== undefined)
    expect(kept.length).toBeLessThan(600)
    expect(kept).toEqual(skus.slice(-kept.length))
  })
})
