import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** A running bundled pricing service. */
export interface BundledPricing {
  readonly baseUrl: string
  close(): Promise<void>
}

/**
 * Starts the bundled service on the price list in `file` (see `config/prices.json`). Should it crash later, that
 * is told to `onCrash` and orders are refused as with any pricing service that is down.
 */
export async function startBundledPricing(
  file: string,
  onCrash: (error: unknown) => void,
): Promise<BundledPricing> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: { file } })
  const [{ port }] = (await once(worker, 'message')) as [{ port: number }]
  worker.on('error', onCrash)
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    close: async () => {
      await worker.terminate()
    },
  }
}
