import { Channel, type Clock } from '../runtime/index.ts'
import { SpaceSaving } from './space-saving.ts'

/**
 * Hot keys: which keys draw at least `share` of all observations, in windows of `windowMs` on the monotonic clock.
 *
 *   cool ──share reached, with minSamples observations, in the running window──▶ hot
 *   hot  ──share not reached in the whole of the window that ended──▶ cool
 *   hot  ──a whole window without an observation──▶ cool
 *
 * So a verdict stands until the window after its own has ended. A key becomes hot at once: a storm would have done its
 * harm by the end of the window, and looking costs one comparison, at an observation of the key itself. A key that was
 * only lucky at the start of a window is hot for the rest of it.
 *
 * Totals are exact, shares are lower bounds: what Space-Saving is sure of, count − error. Nothing is hot that should
 * not be, and a key with `share` + 1/48 of a window is not missed, unless 32 are hot already. Windows turn when
 * something is observed or asked, without a timer. All of it together stays below 64 KiB.
 */
export class HotKeys {
  readonly #options: HotKeyOptions
  readonly #clock: Clock
  readonly #changes = new Channel<HotKeyChange>()
  readonly #counters = new SpaceSaving(COUNTERS)
  /** Each with the share that made it hot. */
  #hot = new Map<string, number>()
  #window: number
  #reads = 0

  /** `onChange` hears of every key that becomes hot or cools; if it throws, that is a process warning. */
  constructor(options: HotKeyOptions, clock: Clock, onChange: (change: HotKeyChange) => void) {
    this.#options = options
    this.#clock = clock
    this.#changes.subscribe(onChange)
    this.#window = this.#currentWindow()
  }

  /** Something is read, and will be observed later, with others, or never. */
  noteRead(): void {
    this.#reads++
  }

  /** Counts `key` as seen `times` times, now. */
  observe(key: string, times = 1): void {
    this.#turn()
    const share = this.#shareOf(this.#counters.observe(key, times))
    if (this.#isEnough(share) && !this.#hot.has(key) && this.#hot.size < MAX_HOT) this.#warm(key, share)
  }

  isHot(key: string): boolean {
    this.#turn()
    return this.#hot.has(key)
  }

  /** How many keys are hot. */
  get count(): number {
    this.#turn()
    return this.#hot.size
  }

  /** The hot keys, each with the share that made it hot, the highest first. */
  report(): { key: string; share: number }[] {
    this.#turn()
    return [...this.#hot]
      .map(([key, share]) => ({ key, share }))
      .sort((one, other) => other.share - one.share)
  }

  /** Hot before the window has ended. */
  #warm(observed: string, share: number): void {
    // The counter's own copy: what was passed in may hold on to more than its text.
    const key = this.#counters.top().find(counter => counter.key === observed)?.key
    if (key === undefined) return
    this.#hot.set(key, share)
    this.#changes.publish({ key, share, hot: true })
  }

  /** Decides on the window that ended, if one has, and begins the next. */
  #turn(): void {
    const window = this.#currentWindow()
    if (window === this.#window) return
    // What was counted before a whole window of silence is too old to decide anything.
    const counted = window === this.#window + 1 ? this.#counters.top() : []
    const shares = new Map(counted.map(({ key, count, error }) => [key, this.#shareOf(count - error)]))
    const before = this.#hot
    const hot = new Map([...shares].filter(([, share]) => this.#isEnough(share)).slice(0, MAX_HOT))
    const warmed = [...hot].filter(([key]) => !before.has(key))
    const cooled = [...before.keys()].filter(key => !hot.has(key))
    this.#hot = hot
    this.#window = window
    this.#counters.clear()
    this.#reads = 0
    // Told when all is decided: a listener may ask, and even observe.
    for (const [key, share] of warmed) this.#changes.publish({ key, share, hot: true })
    for (const key of cooled) this.#changes.publish({ key, share: shares.get(key) ?? 0, hot: false })
  }

  #shareOf(sure: number): number {
    // Divided, as 7 / 100 is the same number as a configured 0.07, while 0.07 × 100 is more than 7.
    return sure / this.#total
  }

  /** Of all reads of the window, observed or not. */
  get #total(): number {
    return Math.max(this.#reads, this.#counters.total)
  }

  #isEnough(share: number): boolean {
    return this.#total >= this.#options.minSamples && share >= this.#options.share
  }

  #currentWindow(): number {
    return Math.floor(this.#clock.nowMs() / this.#options.windowMs)
  }
}

export interface HotKeyOptions {
  /** Above 0, at most 1. */
  readonly share: number
  /** Observations below which nothing in a window is hot. */
  readonly minSamples: number
  readonly windowMs: number
}

export interface HotKeyChange {
  readonly key: string
  /** When it becomes hot, what made it so; when it cools, what it had of the window before, 0 if nothing is known. */
  readonly share: number
  readonly hot: boolean
}

// Measured with the longest keys there are: 63 KB, and 28 KB with usual ones. A window cannot have more than 1 / share
// hot keys at its end, so the limit is for smaller shares than 1/32, and for those that were hot in parts of it.
const COUNTERS = 48
const MAX_HOT = 32
