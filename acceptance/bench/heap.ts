import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes of heap in use once everything that can go has gone. */
export async function heapAfterGc(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let pass = 0; pass < 3; pass++) {
    await new Promise(resolve => setTimeout(resolve, 50))
    gc()
  }
  return process.memoryUsage().heapUsed
}
