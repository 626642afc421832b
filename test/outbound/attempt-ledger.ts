import { expect } from 'vitest'
import type { AttemptResult } from '../../src/outbound/call.ts'
import type { OutboundChannels } from '../../src/outbound/index.ts'

/** Keeps the books of the attempts, from what the channels say. */
export class AttemptLedger {
  readonly results: Record<AttemptResult, number> = {
    won: 0,
    failed: 0,
    cancelled: 0,
    late: 0,
    expired: 0,
    shed: 0,
  }
  readonly hedges = { won: 0, lost: 0, shed: 0 }
  readonly calls: string[] = []
  readonly batchSizes: number[] = []
  readonly late: string[] = []
  launched = 0
  retries = 0

  constructor(channels: OutboundChannels) {
    channels.launched.subscribe(() => this.launched++)
    channels.attempt.subscribe(({ result }) => this.results[result]++)
    channels.hedge.subscribe(({ result }) => this.hedges[result]++)
    channels.retry.subscribe(() => this.retries++)
    channels.call.subscribe(({ result }) => this.calls.push(result))
    channels.batch.subscribe(({ size }) => this.batchSizes.push(size))
    channels.late.subscribe(({ kind }) => this.late.push(kind))
  }

  /** Second attempts that were made. */
  get hedged(): number {
    return this.hedges.won + this.hedges.lost
  }

  get settled(): number {
    return Object.values(this.results).reduce((sum, count) => sum + count, 0)
  }

  /** launched = won + failed + cancelled + late + expired + shed, and so many of them were sent. */
  expectBalanced(sent: number): void {
    expect(this.settled, JSON.stringify(this.results)).toBe(this.launched)
    expect(this.launched - this.results.shed).toBe(sent)
  }
}
