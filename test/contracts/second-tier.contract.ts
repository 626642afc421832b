import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { SecondTier, TierListener } from '../../src/cache/index.ts'
import { tierProgram } from '../cache/model/tier-program.ts'
import { never } from '../support/order-write.ts'

/** One place that instances share; every test gets a new one. */
export interface TierHarness {
  /** One more instance's way to it. */
  open(): SecondTier | Promise<SecondTier>
  /** Time passes there; what is under way goes on, even when it is none. */
  passMs(ms: number): Promise<void>
  /** The place starts again with nothing, as one without a disk does. */
  wipe(): void | Promise<void>
  dispose(): Promise<void>
}

type MakeHarness = () => TierHarness | Promise<TierHarness>

/** What every driver of the second tier promises as long as the place is well. */
export function secondTierContract(name: string, makeHarness: MakeHarness): void {
  describe(`second-tier contract: ${name}`, () => {
    let harness: TierHarness
    let one: SecondTier
    let other: SecondTier

    beforeEach(async () => {
      harness = await makeHarness()
      one = await harness.open()
      other = await harness.open()
    })
    afterEach(() => harness.dispose())

    const ticketOf = async (tier: SecondTier, key: string, tags: readonly string[]) => {
      const answer = await tier.get(key, tags, never())
      if (answer.kind === 'found') throw new Error(`there is something under ${key}`)
      return answer.ticket
    }
    const put = async (key: string, text: string, tags: readonly string[], ttlMs = 60_000) =>
      one.put(key, text, { tags, ttlMs, ticket: await ticketOf(one, key, tags) })
    const expectFound = async (key: string, tags: readonly string[], text: string) => {
      for (const tier of [one, other]) {
        expect(await tier.get(key, tags, never())).toEqual({ kind: 'found', text })
      }
    }
    const expectMissing = async (key: string, tags: readonly string[]) => {
      for (const tier of [one, other]) {
        expect(await tier.get(key, tags, never())).toMatchObject({ kind: 'missing' })
      }
    }

    it('hands out a ticket for what it does not have, and keeps what is put with it for all', async () => {
      await expectMissing('key', ['tag'])
      await put('key', '{"value":1}', ['tag'])
      await expectFound('key', ['tag'], '{"value":1}')
      await expectMissing('other', ['tag'])
    })

    it.each([
      ['everything that text may be', '{"value":"naïve \\u0000 \\"😀\\"\r\n"}'],
      ['64 KiB', JSON.stringify({ value: 'é'.repeat(32_768) })],
      ['nothing but an empty object', '{}'],
    ])('keeps a text byte for byte: %s', async (_, text) => {
      await put('key', text, ['tag'])
      await expectFound('key', ['tag'], text)
    })

    it('keeps a text for its time, however often it is read', async () => {
      await put('short', '1', ['tag'], 200)
      await put('long', '2', ['tag'])
      await harness.passMs(100)
      await expectFound('short', ['tag'], '1')
      await harness.passMs(150)
      await expectMissing('short', ['tag'])
      await expectFound('long', ['tag'], '2')
    })

    it.each(['first', 'second'])(
      'ends a text with each of its tags (%s), in every copy, and no other text',
      async tag => {
        const tags = ['first', 'second']
        for (const key of ['key', 'key#0', 'key#15']) await put(key, '1', tags)
        await put('bystander', '2', ['third'])
        await other.invalidate([tag])
        for (const key of ['key', 'key#0', 'key#15']) await expectMissing(key, tags)
        await expectFound('bystander', ['third'], '2')
      },
    )

    it('ends nothing of a tag that only looks like another', async () => {
      await put('key', '1', ['order:1'])
      await other.invalidate(['order:', 'order', 'order:11', 'ORDER:1', 'order:1 ', 'order:*', ''])
      await expectFound('key', ['order:1'], '1')
    })

    it('takes a ticket for void once one of its tags has moved, whoever moved it', async () => {
      const tags = ['first', 'second']
      for (const [tier, tag] of [
        [one, 'first'],
        [other, 'second'],
      ] as const) {
        const ticket = await ticketOf(one, 'key', tags)
        await tier.invalidate([tag])
        await one.put('key', 'old', { tags, ttlMs: 60_000, ticket })
        await expectMissing('key', tags)
      }
    })

    it('takes a ticket for good while only other tags move', async () => {
      const ticket = await ticketOf(one, 'key', ['tag'])
      await other.invalidate(['another'])
      await one.put('key', '1', { tags: ['tag'], ttlMs: 60_000, ticket })
      await expectFound('key', ['tag'], '1')
    })

    it('lets a void ticket do nothing to what was put since', async () => {
      const ticket = await ticketOf(other, 'key', ['tag'])
      await one.invalidate(['tag'])
      await put('key', 'new', ['tag'])
      await other.put('key', 'old', { tags: ['tag'], ttlMs: 60_000, ticket }).catch(() => undefined)
      await expectFound('key', ['tag'], 'new')
    })

    it('forgets everything when it is cleared, tickets too', async () => {
      const ticket = await ticketOf(one, 'later', ['tag'])
      await put('key', '1', ['tag'])
      await put('untagged', '2', [])
      await other.clear()
      await one.put('later', '3', { tags: ['tag'], ttlMs: 60_000, ticket })
      await expectMissing('key', ['tag'])
      await expectMissing('untagged', [])
      await expectMissing('later', ['tag'])
      await put('key', '4', ['tag'])
      await expectFound('key', ['tag'], '4')
    })

    it('takes a ticket of an earlier life for void, wherever its counts stand', async () => {
      await one.invalidate(['tag'])
      const ticket = await ticketOf(one, 'key', ['tag'])
      await harness.wipe()
      for (let moves = 0; moves < 3; moves++) {
        await one.put('key', 'old', { tags: ['tag'], ttlMs: 60_000, ticket }).catch(() => undefined)
        await expectMissing('key', ['tag'])
        await one.invalidate(['tag'])
      }
    })

    it.each(['', 'x', '-1', '1e999', '__proto__', '{}'])(
      'takes no ticket that is none: "%s"',
      async ticket => {
        await one.put('key', '1', { tags: ['tag'], ttlMs: 60_000, ticket }).catch(() => undefined)
        await expectMissing('key', ['tag'])
      },
    )

    it.each([
      ['a prototype', '__proto__'],
      ['a constructor', 'constructor'],
      ['wildcards', '*?[a-z]'],
      ['braces', '{a}{b}'],
      ['blanks', ' \t\r\n'],
      ['a zero', 'a\0b'],
      ['more than ASCII', 'é😀'],
      ['the longest', '~'.repeat(512)],
    ])('takes hostile keys and tags for ordinary ones: %s', async (_, text) => {
      await expectMissing(text, [text])
      await put(text, '1', [text])
      await put(`${text}x`, '2', [`${text}x`])
      await expectFound(text, [text], '1')
      await one.invalidate([text])
      await expectMissing(text, [text])
      await expectFound(`${text}x`, [`${text}x`], '2')
    })

    describe('listening', () => {
      const listener = () => ({
        invalidated: vi.fn<TierListener['invalidated']>(),
        lost: vi.fn<() => void>(),
      })
      const told = (fn: { mock: { calls: unknown[][] } }) => fn.mock.calls.flat(2)

      it('tells the others what was invalidated once it counts, and not who did it', async () => {
        await put('key', 'old', ['a'])
        const mine = listener()
        const theirs = { ...listener(), found: [] as unknown[] }
        one.listen(mine)
        other.listen({
          lost: theirs.lost,
          invalidated: tags => {
            theirs.invalidated(tags)
            other.get('key', ['a'], never()).then(({ kind }) => theirs.found.push(kind))
          },
        })
        await harness.passMs(0)
        await one.invalidate(['a', 'b'])
        await vi.waitFor(() => expect(told(theirs.invalidated)).toEqual(['a', 'b']))
        await vi.waitFor(() => expect(theirs.found).toEqual(['missing']))
        expect(theirs.lost).not.toHaveBeenCalled()
        expect(mine.invalidated).not.toHaveBeenCalled()
      })

      it('tells the others of a clear as of something lost, for it may concern all that they hold', async () => {
        const theirs = listener()
        other.listen(theirs)
        await harness.passMs(0)
        await one.clear()
        await vi.waitFor(() => expect(theirs.lost).toHaveBeenCalled())
      })

      it('tells everyone that something was lost when the place started again', async () => {
        const listeners = [one, other].map(tier => {
          const both = listener()
          tier.listen(both)
          return both
        })
        await harness.passMs(0)
        await harness.wipe()
        for (const { lost } of listeners) await vi.waitFor(() => expect(lost).toHaveBeenCalled())
      })

      it('tells nothing to one that has left, and goes on for those who have not', async () => {
        const [left, stays] = [listener(), listener()]
        const leave = other.listen(left)
        other.listen(stays)
        await harness.passMs(0)
        leave()
        leave()
        await one.invalidate(['tag'])
        await vi.waitFor(() => expect(told(stays.invalidated)).toEqual(['tag']))
        expect(left.invalidated).not.toHaveBeenCalled()
      })
    })

    it('leaves no listener on a signal, and settles when it aborts', async () => {
      const { signal } = new AbortController()
      await one.get('key', ['tag'], signal)
      expect(getEventListeners(signal, 'abort')).toEqual([])
      await one.get('key', ['tag'], AbortSignal.abort()).catch(() => undefined)
    })
  })

  secondTierFence(name, makeHarness)
}

/** What holds even when calls fail, hang, come late or lie about having failed: judged in the order of real time. */
export function secondTierFence(name: string, makeHarness: MakeHarness): void {
  describe(`second-tier fence: ${name}`, () => {
    it('no text is found that a tag has moved under since its ticket was handed out', async () => {
      await fc.assert(
        fc.asyncProperty(tierProgram.steps, async steps => {
          const harness = await makeHarness()
          try {
            expect(await tierProgram.outOfDate(harness, steps)).toEqual([])
          } finally {
            await harness.dispose()
          }
        }),
      )
    })
  })
}
