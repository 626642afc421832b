import type { Bench } from '../../support/bench.ts'
import { created, demand, pointers, problem } from '../../support/expect.ts'
import { freshKey, sampleOrder, sampleText } from '../../support/samples.ts'

const item = (index: number) => ({ sku: `SKU-${index}`, quantity: 1 })
const items = (count: number) => Array.from({ length: count }, (_, index) => item(index))
const quantity = (value: unknown) => ({ ...sampleOrder(), items: [{ sku: 'SKU-1', quantity: value }] })
const sku = (value: unknown) => ({ ...sampleOrder(), items: [{ sku: value, quantity: 1 }] })
const written = (text: string) => sampleText(':2}', `:${text}}`)
const without = (name: string) => ({ ...sampleOrder(), [name]: undefined })

// What stands on the safe side of each bound.
const VALID: Record<string, unknown> = {
  'quantity 1': quantity(1),
  'quantity 1000': quantity(1000),
  'quantity 1e3, which is 1000': written('1e3'),
  'quantity 1.0, which is 1': written('1.0'),
  '50 items': { ...sampleOrder(), items: items(50) },
  'a SKU of 64 characters': sku('s'.repeat(64)),
  'a SKU called __proto__': sku('__proto__'),
  'a customerId of 64 characters': { ...sampleOrder(), customerId: 'c'.repeat(64) },
  'a customerId of every allowed kind': { ...sampleOrder(), customerId: 'aZ09_.:-' },
  'a customerId called constructor': { ...sampleOrder(), customerId: 'constructor' },
  'a reference of 1 character': { ...sampleOrder(), reference: 'r' },
  'a reference of 128 characters': { ...sampleOrder(), reference: 'r'.repeat(128) },
  'a reference of 128 two-byte characters': { ...sampleOrder(), reference: 'é'.repeat(128) },
}

// What stands on the other side, and the place that errors[] must name.
const INVALID: Record<string, [body: unknown, pointer: RegExp]> = {
  'quantity 0': [quantity(0), /^\/items\/0\/quantity$/],
  'quantity -1': [quantity(-1), /^\/items\/0\/quantity$/],
  'quantity 1001': [quantity(1001), /^\/items\/0\/quantity$/],
  'quantity 1.5': [quantity(1.5), /^\/items\/0\/quantity$/],
  'quantity "1"': [quantity('1'), /^\/items\/0\/quantity$/],
  'quantity true': [quantity(true), /^\/items\/0\/quantity$/],
  'quantity null': [quantity(null), /^\/items\/0\/quantity$/],
  'quantity [1]': [quantity([1]), /^\/items\/0\/quantity$/],
  'quantity 1e400': [written('1e400'), /^\/items\/0\/quantity$/],
  'quantity 9007199254740993': [written('9007199254740993'), /^\/items\/0\/quantity$/],
  'quantity 1.0000000001': [written('1.0000000001'), /^\/items\/0\/quantity$/],
  'no items': [without('items'), /^\/items$/],
  'items empty': [{ ...sampleOrder(), items: [] }, /^\/items$/],
  'items an object': [{ ...sampleOrder(), items: { 0: item(0), length: 1 } }, /^\/items$/],
  'items a string': [{ ...sampleOrder(), items: 'SKU-1' }, /^\/items$/],
  '51 items': [{ ...sampleOrder(), items: items(51) }, /^\/items$/],
  '20000 items': [{ ...sampleOrder(), items: Array(20_000).fill(0) }, /^\/items/],
  'an item null': [{ ...sampleOrder(), items: [item(1), null] }, /^\/items\/1$/],
  'an item that is a list': [{ ...sampleOrder(), items: [['SKU-1', 1]] }, /^\/items\/0$/],
  'an item without SKU': [{ ...sampleOrder(), items: [{ quantity: 1 }] }, /^\/items\/0\/sku$/],
  'an item without quantity': [{ ...sampleOrder(), items: [{ sku: 'SKU-1' }] }, /^\/items\/0\/quantity$/],
  'one SKU twice': [{ ...sampleOrder(), items: [item(1), item(2), item(1)] }, /^\/items\/2(\/sku)?$/],
  'a SKU empty': [sku(''), /^\/items\/0\/sku$/],
  'a SKU of 65 characters': [sku('s'.repeat(65)), /^\/items\/0\/sku$/],
  'a SKU with a space': [sku('SKU 1'), /^\/items\/0\/sku$/],
  'a SKU that ends in a line feed': [sku('SKU-1\n'), /^\/items\/0\/sku$/],
  'a SKU that is a number': [sku(1), /^\/items\/0\/sku$/],
  'no customerId': [without('customerId'), /^\/customerId$/],
  'customerId empty': [{ ...sampleOrder(), customerId: '' }, /^\/customerId$/],
  'customerId null': [{ ...sampleOrder(), customerId: null }, /^\/customerId$/],
  'customerId a number': [{ ...sampleOrder(), customerId: 7 }, /^\/customerId$/],
  'customerId an object': [{ ...sampleOrder(), customerId: { $ne: null } }, /^\/customerId$/],
  'customerId of 65 characters': [{ ...sampleOrder(), customerId: 'c'.repeat(65) }, /^\/customerId$/],
  'customerId with a space': [{ ...sampleOrder(), customerId: 'a b' }, /^\/customerId$/],
  'customerId with an umlaut': [{ ...sampleOrder(), customerId: 'Müller' }, /^\/customerId$/],
  'customerId with a slash': [{ ...sampleOrder(), customerId: 'a/b' }, /^\/customerId$/],
  'customerId that ends in a line feed': [{ ...sampleOrder(), customerId: 'abc\n' }, /^\/customerId$/],
  'customerId ***': [{ ...sampleOrder(), customerId: '***' }, /^\/customerId$/],
  'no currency': [without('currency'), /^\/currency$/],
  'currency eur': [{ ...sampleOrder(), currency: 'eur' }, /^\/currency$/],
  'currency EU': [{ ...sampleOrder(), currency: 'EU' }, /^\/currency$/],
  'currency EURO': [{ ...sampleOrder(), currency: 'EURO' }, /^\/currency$/],
  'currency with a letter that is no ASCII': [{ ...sampleOrder(), currency: 'ΕUR' }, /^\/currency$/],
  'currency ["EUR"]': [{ ...sampleOrder(), currency: ['EUR'] }, /^\/currency$/],
  'reference empty': [{ ...sampleOrder(), reference: '' }, /^\/reference$/],
  'reference null': [{ ...sampleOrder(), reference: null }, /^\/reference$/],
  'reference a number': [{ ...sampleOrder(), reference: 9 }, /^\/reference$/],
  'reference of 129 characters': [{ ...sampleOrder(), reference: 'r'.repeat(129) }, /^\/reference$/],
  'reference with a line feed': [{ ...sampleOrder(), reference: 'a\nb' }, /^\/reference$/],
  'reference with NUL': [{ ...sampleOrder(), reference: 'a\u0000b' }, /^\/reference$/],
  'reference with a C1 control': [{ ...sampleOrder(), reference: 'a\u0085b' }, /^\/reference$/],
  'reference with half a surrogate pair': [sampleText('ref-9', '\\ud800'), /^\/reference$/],
  'an unknown field': [{ ...sampleOrder(), discount: 1 }, /^(\/discount)?$/],
  'an unknown field in an item': [
    { ...sampleOrder(), items: [{ ...item(1), price: 1 }] },
    /^\/items\/0(\/price)?$/,
  ],
  'a field of the answer': [{ ...sampleOrder(), id: 'mine', total: 0 }, /^(\/(id|total))?$/],
  'a field called __proto__': [
    sampleText('{"cust', '{"__proto__":{"currency":"EUR"},"cust'),
    /^(\/__proto__)?$/,
  ],
  'a field called constructor': [sampleText('{"cust', '{"constructor":{},"cust'), /^(\/constructor)?$/],
  'an item with a field called __proto__': [sampleText('{"sku"', '{"__proto__":{},"sku"'), /^\/items\/0/],
  'an empty object': [{}, /^\/(customerId|currency|items)$/],
}

/** The order request: each bound from both sides. A refusal is quick and leaves nothing behind. */
export async function values({ trial, api }: Bench): Promise<void> {
  for (const [what, body] of Object.entries(VALID)) {
    await trial.check(`accepted: ${what}`, async () => {
      created(await api.order(freshKey(), body))
    })
  }
  for (const [what, [body, pointer]] of Object.entries(INVALID)) {
    await trial.check(`refused: ${what}`, async () => {
      const key = freshKey()
      const answer = await api.order(key, body)
      problem(answer, 400, 'validation-failed')
      const named = pointers(answer)
      demand(named.length <= 100, `a bounded list of errors, saw ${named.length}`)
      demand(
        named.some(place => pointer.test(place)),
        `a pointer like ${pointer}, saw ${named.slice(0, 5)}`,
      )
      created(await api.order(key, sampleOrder()))
    })
  }

  await trial.check('refused: several faults at once, each is named', async () => {
    const answer = await api.order(freshKey(), {
      currency: 'eur',
      items: [item(1), { sku: '', quantity: 0 }],
    })
    problem(answer, 400, 'validation-failed')
    const named = new Set(pointers(answer))
    for (const place of ['/customerId', '/currency', '/items/1/sku', '/items/1/quantity']) {
      demand(named.has(place), `${place} among the pointers, saw ${[...named]}`)
    }
  })
}
