import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seed.ts'],
    // Processes, not threads: native modules, signals and process warnings then belong to one file alone.
    pool: 'forks',
    // Heap checks collect before they measure.
    execArgv: ['--expose-gc'],
  },
})
