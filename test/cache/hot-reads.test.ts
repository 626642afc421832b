import { expect, test } from 'vitest'
import { cached } from './loads.ts'

/** Fills the keys and reads each of them so often. */
async function readEach(world: ReturnType<typeof cached>, keys: readonly string[], times: number) {
  for (const key of keys) await world.fill(key, key)
  for (const key of keys) for (let read = 0; read < times; read++) world.query.peek(key)
}

const MANY = Array.from({ length: 1_000 }, (_, n) => `key-${n}`)

test('a key that takes its share of all reads is hot, and told with its share', async () => {
  const world = cached()
  const changes: { key: string; share: number; hot: boolean }[] = []
  world.channels.hotKey.subscribe(change => changes.push(change))
  await readEach(world, MANY, 4)
  expect(world.cache.hotKeys).toBe(0)
  await readEach(world, ['hot'], 1_200)
  expect(world.cache.hotKeys).toBe(1)
  expect(changes).toEqual([{ key: 'hot', share: expect.closeTo(0.1, 2), hot: true }])
})

test('reads of keys that are read too seldom to be observed are part of the whole', async () => {
  const world = cached()
  // 11,000 reads and 1,000 loads; not one of these keys is read often enough for the counters to be told.
  await readEach(world, MANY, 10)
  await readEach(world, ['key'], 1_100)
  expect(world.cache.hotKeys).toBe(0)
})
