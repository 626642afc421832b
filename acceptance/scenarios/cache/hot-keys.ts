import { type Bench, openBench } from '../../support/bench.ts'
import { between, created, demand, pageOf, same, status } from '../../support/expect.ts'
import { Metrics } from '../../support/metrics.ts'
import { freshKey, sampleOrder } from '../../support/samples.ts'
import type { Json, Server } from '../../support/server.ts'
import type { Trial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'
import { HOT_KEYS, SOON_HOT } from './configurations.ts'

const OTHERS = 10
// A verdict takes the rest of a window and one whole window more.
const WINDOWS_MS = 3 * HOT_KEYS.windowMs

/** Keys that draw a large share of all reads: found, told, and found to have cooled. */
export async function hotKeys(trial: Trial): Promise<void> {
  const bench = await openBench(trial, SOON_HOT)
  const { api, server } = bench
  const key = freshKey()
  const { id } = created(await api.order(key, sampleOrder()))
  const others: string[] = []
  while (others.length < OTHERS) others.push(created(await api.order(freshKey(), sampleOrder())).id)
  const get = async (id: string) => status(await api.get(`/v1/orders/${id}`), 200)

  await trial.check('the thresholds of hot keys are logged at the start', async () => {
    const [line] = logged(server, 'hot key thresholds')
    for (const [name, value] of Object.entries(HOT_KEYS)) same(line?.[name], value, name)
    return JSON.stringify(HOT_KEYS)
  })

  await trial.check('reads that are spread evenly make no key hot', async () => {
    for (let round = 0; round < 50; round++) await Promise.all(others.map(get))
    same(await hot(bench), 0, 'the hot keys')
    same(logged(server, 'hot key').length, 0, 'the lines about hot keys')
    return `${50 * OTHERS} reads`
  })

  await trial.check(
    'a key that draws a third of the reads is not hot, however thinly the rest is spread',
    async () => {
      const absent = Array.from({ length: 162 }, (_, index) => `01920000-0000-7000-8000-${index + 1e11}`)
      const read = async (id: string) => status(await api.get(`/v1/orders/${id}`), 404)
      const third = Array<string>(9).fill(id)
      for (let round = 0; round < 8; round++) {
        for (let from = 0; from < absent.length; from += 18) {
          await Promise.all([...third.map(get), ...absent.slice(from, from + 18).map(read)])
        }
      }
      same(await hot(bench), 0, 'the hot keys')
      same(logged(server, 'hot key').length, 0, 'the lines about hot keys')
      return `${8 * absent.length} reads of others, ${(8 * absent.length) / 2} of one`
    },
  )

  await trial.check(
    'a key that is read far more often than others becomes hot, and its share is told',
    async () => {
      await until(
        'a hot key',
        async () => {
          for (const other of others) await Promise.all([get(id), get(id), get(id), get(other)])
          return (await hot(bench)) === 1
        },
        WINDOWS_MS,
      )
      const lines = await until('a line about it', () => {
        const lines = logged(server, 'hot key')
        return lines.length > 0 && lines
      })
      same(lines.length, 1, 'the lines about hot keys')
      const [line] = lines
      demand(String(line?.key).endsWith(id), `the key of ${id}, saw ${line?.key}`)
      same(line?.hot, true, 'hot')
      between(Number(line?.share), HOT_KEYS.share, 0.9, 'the share')
      return `share ${Number(line?.share).toFixed(2)}`
    },
  )

  await trial.check('a key that is read no more cools, and that is told', async () => {
    await until(
      'no hot key',
      async () => {
        await Promise.all(others.map(get))
        return (await hot(bench)) === 0
      },
      WINDOWS_MS,
    )
    const line = await until('a line about it', () =>
      logged(server, 'hot key').find(({ hot }) => hot === false),
    )
    demand(String(line.key).endsWith(id), `the key of ${id}, saw ${line.key}`)
    between(Number(line.share), 0, HOT_KEYS.share, 'the share')
    return `share ${Number(line.share).toFixed(2)}`
  })

  await trial.check('a hot list by key does not tell the key to the log', async () => {
    await until(
      'a hot key',
      async () => {
        const lists = Array.from({ length: 20 }, () => api.list({ idempotencyKey: key }))
        for (const answer of await Promise.all(lists)) same(pageOf(answer).orders.length, 1, 'the orders')
        return (await hot(bench)) > 0
      },
      WINDOWS_MS,
    )
    await until('a line about it', () => logged(server, 'hot key').length >= 3)
    demand(!server.lines.join('\n').includes(key), `no ${key} in the log`)
  })
}

async function hot({ admin }: Bench): Promise<number> {
  return (await Metrics.read(admin)).sum('punctual_cache_hot_keys')
}

function logged({ lines }: Server, msg: string): Json[] {
  return lines.filter(line => line.includes(`"msg":"${msg}"`)).map(line => JSON.parse(line) as Json)
}
