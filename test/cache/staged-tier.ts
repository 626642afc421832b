import type { SecondTier, TierAnswer, TierListener, TierPut } from '../../src/cache/index.ts'

/** One question to the tier; it is answered when the test says so. */
export class TierCall<Answer> {
  readonly key: string
  readonly tags: readonly string[]
  readonly signal: AbortSignal | undefined
  readonly #answer = Promise.withResolvers<Answer>()

  constructor(key: string, tags: readonly string[], signal?: AbortSignal) {
    this.key = key
    this.tags = tags
    this.signal = signal
  }

  get answer(): Promise<Answer> {
    return this.#answer.promise
  }

  say(answer: Answer): void {
    this.#answer.resolve(answer)
  }

  fail(): void {
    this.#answer.reject(new Error('ECONNRESET'))
  }
}

/** A second tier that says what the test has it say, and nothing by itself. */
export class StagedTier implements SecondTier {
  readonly timeoutMs = 20
  readonly gets: TierCall<TierAnswer>[] = []
  readonly invalidations: TierCall<void>[] = []
  readonly clears: TierCall<void>[] = []
  readonly puts: { key: string; text: string; put: TierPut }[] = []
  readonly listeners = new Set<TierListener>()
  /** Runs at the start of each call, which throws what this throws. */
  onCall = (_name: 'get' | 'put' | 'invalidate' | 'clear'): void => {}

  get(key: string, tags: readonly string[], signal: AbortSignal): Promise<TierAnswer> {
    this.onCall('get')
    return asked(this.gets, new TierCall(key, tags, signal))
  }

  put(key: string, text: string, put: TierPut): Promise<void> {
    this.onCall('put')
    this.puts.push({ key, text, put })
    return Promise.resolve()
  }

  invalidate(tags: readonly string[]): Promise<void> {
    this.onCall('invalidate')
    return asked(this.invalidations, new TierCall('', tags))
  }

  clear(): Promise<void> {
    this.onCall('clear')
    return asked(this.clears, new TierCall('', []))
  }

  listen(listener: TierListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
}

function asked<Answer>(calls: TierCall<Answer>[], call: TierCall<Answer>): Promise<Answer> {
  calls.push(call)
  return call.answer
}
