import type { Bench } from '../../support/bench.ts'
import { demand, pageOf, pointers, problem } from '../../support/expect.ts'
import { freshKey } from '../../support/samples.ts'

const CUSTOMER = 'customerId=customer-7'
const base64url = (hexadecimal: string) => Buffer.from(hexadecimal, 'hex').toString('base64url')
const ID = '01920000000070008000000000000000'

// What a list takes, beside the values that the other checks use.
const VALID: Record<string, string> = {
  'limit 1': `${CUSTOMER}&limit=1`,
  'limit 100': `${CUSTOMER}&limit=100`,
  'limit %31, which is 1': `${CUSTOMER}&limit=%31`,
  'a customerId of 64 characters': `customerId=${'c'.repeat(64)}`,
  'a customerId called __proto__': 'customerId=__proto__',
  'a customerId called constructor': 'customerId=constructor',
  'a key of 255 characters': `idempotencyKey=${'k'.repeat(255)}`,
  'a key with a plus sign for a space': 'idempotencyKey=two+words',
}

// What it does not take, and the place that errors[] must name.
const INVALID: Record<string, [query: string, pointer: string]> = {
  'no query at all': ['', '/query/customerId'],
  'an empty query': ['?', '/query/customerId'],
  'no filter': ['?limit=5', '/query/customerId'],
  ...query('customerId', {
    'an empty customerId': '',
    'a customerId of 65 characters': 'c'.repeat(65),
    'a customerId with a space': 'a%20b',
    'a customerId with a plus sign': 'a+b',
    'a customerId with a slash': 'a%2Fb',
    'a customerId with an umlaut': 'M%C3%BCller',
    'a customerId that ends in a line feed': 'abc%0A',
    'a customerId with NUL': 'a%00b',
    'a customerId of asterisks': '***',
    'a customerId of no UTF-8': '%ff',
    'a customerId that is badly encoded': '%zz',
    'a customerId like SQL': "a'%20OR%201=1--",
  }),
  ...query('idempotencyKey', {
    'an empty key': '',
    'a key of 256 characters': 'k'.repeat(256),
    'a key that opens a quote': '%22open',
    'a key of empty quotes': '%22%22',
    'a key with a line feed': 'a%0Ab',
    'a key with an umlaut': '%C3%BC',
    'a key with NUL': 'a%00b',
  }),
  ...query(`${CUSTOMER}&limit`, {
    'limit 0': '0',
    'limit 101': '101',
    'limit 1.5': '1.5',
    'limit 1.0': '1.0',
    'limit -1': '-1',
    'limit +1': '%2B1',
    'limit 1e2': '1e2',
    'limit 0x10': '0x10',
    'limit 010': '010',
    'limit 1 with a space': '%201',
    'limit 1 with a line feed': '1%0A',
    'limit 99999999999999999999': '99999999999999999999',
    'limit Infinity': 'Infinity',
    'limit many': 'many',
    'limit in other digits': '%D9%A1',
    'an empty limit': '',
  }),
  ...query(`${CUSTOMER}&cursor`, {
    'an empty cursor': '',
    'a cursor of one letter': 'x',
    'a cursor that is an id': '01920000-0000-7000-8000-000000000000',
    'a cursor that is a number': '20',
    'a cursor of a UUID of another version': base64url('3b241101e2bb42558caf4136c566a962'),
    'a cursor of zeros': base64url('0'.repeat(32)),
    'a cursor one byte too short': base64url(ID.slice(2)),
    'a cursor one byte too long': base64url(`${ID}0a`),
    'a cursor with padding': `${base64url(ID)}%3D%3D`,
    'a cursor in the other alphabet': base64url('019200000000700080fbefbe00000000').replaceAll('-', '%2B'),
    'a cursor whose last letter says too much': `${base64url(ID).slice(0, -1)}B`,
    'a cursor with a space': `%20${base64url(ID)}`,
    'a cursor of 4,000 letters': 'A'.repeat(4_000),
    'a cursor like SQL': "'%20OR%201=1--",
  }),
  'an unknown parameter': [`?${CUSTOMER}&sort=asc`, '/query/sort'],
  'a parameter in other letters': [`?${CUSTOMER}&Limit=5`, '/query/Limit'],
  'a parameter without a value': [`?${CUSTOMER}&all`, '/query/all'],
  'a parameter without a name': [`?${CUSTOMER}&=1`, '/query/'],
  'a parameter with a slash in its name': [`?${CUSTOMER}&a%2Fb=1`, '/query/a~1b'],
  'a parameter in brackets': [`?${CUSTOMER}&limit[]=5`, '/query/limit[]'],
  'a parameter of a parameter': ['?customerId[$ne]=x', '/query/customerId[$ne]'],
  'a parameter called __proto__': [`?${CUSTOMER}&__proto__=1`, '/query/__proto__'],
  'a parameter called constructor': [`?${CUSTOMER}&constructor=1`, '/query/constructor'],
  'a parameter called hasOwnProperty': [`?${CUSTOMER}&hasOwnProperty=1`, '/query/hasOwnProperty'],
  'customerId twice': [`?${CUSTOMER}&customerId=customer-8`, '/query/customerId'],
  'customerId twice, alike': [`?${CUSTOMER}&${CUSTOMER}`, '/query/customerId'],
  'customerId twice, once encoded': [`?${CUSTOMER}&customer%49d=customer-8`, '/query/customerId'],
  'idempotencyKey twice': ['?idempotencyKey=a&idempotencyKey=b', '/query/idempotencyKey'],
  'limit twice': [`?${CUSTOMER}&limit=5&limit=5`, '/query/limit'],
  'cursor twice': [`?${CUSTOMER}&cursor=a&cursor=a`, '/query/cursor'],
  '__proto__ twice': [`?${CUSTOMER}&__proto__=1&__proto__=2`, '/query/__proto__'],
  '2,000 parameters': [
    `?${CUSTOMER}${Array.from({ length: 2_000 }, (_, i) => `&p${i}`).join('')}`,
    '/query/p7',
  ],
}

/** The query of GET /v1/orders: each bound from both sides, and each refusal names the parameter. */
export async function queries({ trial, api }: Bench): Promise<void> {
  for (const [what, query] of Object.entries(VALID)) {
    await trial.check(`listed: ${what}`, async () => {
      pageOf(await api.get(`/v1/orders?${query}`))
    })
  }

  for (const [what, [query, pointer]] of Object.entries(INVALID)) {
    await trial.check(`not listed: ${what}`, async () => {
      const answer = await api.get(`/v1/orders${query}`)
      problem(answer, 400, 'validation-failed')
      const named = pointers(answer)
      demand(named.length <= 100, `a bounded list of errors, saw ${named.length}`)
      demand(named.includes(pointer), `the pointer ${pointer}, saw ${named.slice(0, 5)}`)
    })
  }

  await trial.check('not listed: several faults at once, each is named', async () => {
    const answer = await api.list({
      customerId: '',
      idempotencyKey: '"',
      limit: '0',
      cursor: 'x',
      [freshKey()]: '1',
    })
    problem(answer, 400, 'validation-failed')
    const named = pointers(answer)
    for (const name of ['customerId', 'idempotencyKey', 'limit', 'cursor'])
      demand(named.includes(`/query/${name}`), `/query/${name} among the pointers, saw ${named}`)
    demand(named.length === 5, `five faults, saw ${named}`)
  })
}

/** Values of the last parameter of `beginning`, percent-encoded as they shall be sent. */
function query(
  beginning: string,
  values: Record<string, string>,
): Record<string, [query: string, pointer: string]> {
  const name = beginning.split('&').at(-1)
  return Object.fromEntries(
    Object.entries(values).map(([what, value]) => [what, [`?${beginning}=${value}`, `/query/${name}`]]),
  )
}
