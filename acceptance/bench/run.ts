import { availableParallelism } from 'node:os'
import { cacheBench } from './cache/cache.ts'
import { ours } from './cache/ours.ts'
import { events } from './events.ts'
import { type Bench, describeFigure, reached } from './figure.ts'
import { lifecycle } from './lifecycle.ts'
import { orders } from './orders.ts'
import { outbound } from './outbound.ts'

/**
 * Figures side by side in one run: ratios between this and a peer, or between a mechanism on and off.
 *
 *   npm run bench                       every bench
 *   npm run bench -- outbound           one of orders, outbound, cache, events and lifecycle
 *   npm run bench -- --short            a quick look that each one works
 *
 * Exits 1 when a figure is short of what is wanted, unless `--short`, whose figures mean little.
 */
const BENCHES: readonly Bench[] = [orders, outbound, cacheBench(ours), events, lifecycle]

const names = process.argv.slice(2).filter(name => name !== '--short')
const short = process.argv.includes('--short')
const unknown = names.filter(name => !BENCHES.some(bench => bench.name === name))
if (unknown.length > 0) {
  console.error(
    `no bench is called ${unknown.join(', ')}; there are ${BENCHES.map(({ name }) => name).join(', ')}`,
  )
  process.exit(2)
}

console.log(`${availableParallelism()} cores, Node.js ${process.version}`)
let missed = 0
for (const bench of BENCHES) {
  if (names.length > 0 && !names.includes(bench.name)) continue
  console.log(bench.name)
  const figures = await bench.run({ short, say: line => console.log(`  ${line}`) })
  for (const figure of figures) console.log(`  ${describeFigure(figure)}`)
  missed += figures.filter(figure => !reached(figure)).length
}
process.exit(missed > 0 && !short ? 1 : 0)
