import { describe, expect, test } from 'vitest'
import { drawRandom, randomHex } from '../../src/runtime/index.ts'

/** More than one pool holds, so that refills happen on the way. */
const DRAWS = 10_000

describe('random bytes', () => {
  test('are as many as asked for, whatever is left in the pool', () => {
    for (let draw = 0; draw < DRAWS; draw++) expect(drawRandom(draw % 33)).toHaveLength(draw % 33)
  })

  test('are never handed out twice', () => {
    const drawn = new Set<string>()
    for (let draw = 0; draw < DRAWS; draw++) drawn.add(drawRandom(16).toString('latin1'))
    expect(drawn.size).toBe(DRAWS)
  })

  test('stay what they are while others are drawn from the same pool', () => {
    drawRandom(40_000)
    drawRandom(40_000)
    const first = drawRandom(16)
    const copy = Buffer.from(first)
    for (let draw = 0; draw < 100; draw++) drawRandom(16).fill(0)
    expect(first).toEqual(copy)
  })
})

test('random hex has two lower-case digits a byte and does not repeat', () => {
  const drawn = new Set<string>()
  for (let draw = 0; draw < DRAWS; draw++) {
    const id = randomHex(8)
    expect(id).toMatch(/^[0-9a-f]{16}$/)
    drawn.add(id)
  }
  expect(drawn.size).toBe(DRAWS)
})
