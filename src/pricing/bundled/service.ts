import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** A running bundled pricing service. */
export interface BundledPricing {
  readonly baseUrl: string
  close(): Promise<void>
}

/** Starts the bundled service on the price list in `file` (see `config/prices.json`). */
export async function startBundledPricing(file: string): Promise<BundledPricing> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: { file } })
  const [{ port }] = (await once(worker, 'message')) as [{ port: number }]
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    close: async () => {
      await worker.terminate()
    },
  }
}
