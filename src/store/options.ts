import { group, oneOf, text, wholeNumber } from '../runtime/index.ts'

export const storeOptions = group({
  driver: oneOf(['sqlite'], {
    is: 'Where orders are kept.',
    default: 'sqlite',
    trade: 'The embedded store needs nothing else and serves one machine.',
  }),
  sqlite: group({
    path: text({
      is: 'The database file; its folder is made when it is missing.',
      default: 'data/punctual.db',
      maxLength: 4096,
      trade: 'Put it on a disk whose fsync is honest and fast: each group of orders waits for one.',
    }),
    synchronous: oneOf(['FULL', 'EXTRA', 'NORMAL', 'OFF'], {
      is: 'When SQLite waits for the disk. `FULL`: acknowledged means fsynced.',
      default: 'FULL',
      trade: '`NORMAL` and `OFF` are faster and lose acknowledged orders when power fails.',
    }),
    busyTimeoutMs: wholeNumber({
      is: 'How long a transaction waits for another process that holds the database locked.',
      unit: 'ms',
      default: 100,
      min: 0,
      max: 10_000,
      trade: 'Higher rides out longer locks; every write behind it waits as long.',
    }),
    maxBatch: wholeNumber({
      is: 'Orders in one transaction, and so behind one fsync.',
      unit: 'orders',
      default: 64,
      min: 1,
      max: 1024,
      trade: 'Higher raises throughput and the time one transaction takes.',
    }),
  }),
})
