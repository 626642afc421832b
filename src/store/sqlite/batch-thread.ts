import { BoundedQueue, type Clock, type Timer } from '../../runtime/index.ts'
import type { Fault } from './faults.ts'
import type { Flat, ThreadAnswer } from './protocol.ts'
import type { ThreadListener, ThreadPort } from './thread.ts'

/**
 * Batch thread: a queue before one thread, which gets everything that waits in one message and has at most one
 * batch in its hands. The batches make themselves: whatever arrives in one turn of the loop, or while the thread is
 * busy, goes together.
 *
 *   starting ──ready──▶ idle ──batch sent──▶ busy ──answered──▶ idle
 *   starting, idle, busy ──exit──▶ down ──after a pause──▶ starting
 *   idle ──close(), nothing left──▶ stopping ──exit──▶ closed
 *   down ──close()──▶ closed        starting, busy ──exit after close(), or before the first ready for good──▶ closed
 *
 * While down, everything is refused at once: nobody should spend a budget on waiting for a thread. After a fault an
 * idle thread is probed with an empty batch, because an instance that is not ready gets no traffic that could show
 * that it has recovered.
 */
export class BatchThread<Item> {
  #state: State<Item> = { kind: 'down', timer: undefined }
  #fault: Fault | undefined
  #reason: string | undefined
  #crashes = 0
  #flushing = false
  #probe: Timer | undefined
  #refusal: Extract<ThreadAnswer, { kind: 'refused' }> | undefined
  #onOpen: ((refusal: string | undefined) => void) | undefined
  #closing: PromiseWithResolvers<void> | undefined
  readonly #queue: BoundedQueue<Item>
  readonly #spec: BatchThreadSpec<Item>

  constructor(spec: BatchThreadSpec<Item>) {
    this.#spec = spec
    this.#queue = new BoundedQueue(spec.maxPending)
  }

  /** What keeps the thread from its work; undefined when nothing does. */
  get fault(): Fault | undefined {
    return this.#fault
  }

  /**
   * Starts the thread; resolves with the reason why it cannot be, or with undefined once it is ready, or down for
   * something that may pass.
   */
  open(): Promise<string | undefined> {
    return new Promise(resolve => {
      this.#onOpen = resolve
      this.#start()
    })
  }

  /** False when there is no room, or no thread; the item was not taken. */
  offer(item: Item): boolean {
    const { kind } = this.#state
    if (kind === 'down' || kind === 'closed' || this.#closing) return false
    // After a crash it is there in a moment; of what was in its way it may not know for some time whether that is gone.
    if (kind === 'starting' && this.#fault !== undefined && this.#fault !== 'down') return false
    if (!this.#queue.offer(item)) return false
    if (kind === 'idle' && !this.#flushing) {
      this.#flushing = true
      this.#spec.clock.afterPoll(() => {
        this.#flushing = false
        this.#proceed()
      })
    }
    return true
  }

  /** True when the item had not been sent yet. */
  withdraw(item: Item): boolean {
    return this.#queue.remove(item)
  }

  /** Finishes what was taken, then ends the thread. */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = Promise.withResolvers()
      if (this.#state.kind === 'down') {
        if (this.#state.timer) this.#spec.clock.clearTimer(this.#state.timer)
        this.#become({ kind: 'closed' })
      }
      if (this.#state.kind === 'closed') this.#closing.resolve()
      this.#proceed()
    }
    return this.#closing.promise
  }

  #start(): void {
    const port = this.#spec.start({
      onAnswer: answer => this.#onAnswer(answer),
      onExit: reason => this.#onExit(reason),
    })
    this.#become({ kind: 'starting', port })
  }

  #onAnswer(answer: ThreadAnswer): void {
    switch (answer.kind) {
      case 'refused':
        this.#refusal = answer
        return
      case 'ready': {
        if (this.#state.kind !== 'starting') throw impossible(this.#state.kind, 'ready')
        this.#become({ kind: 'idle', port: this.#state.port })
        this.#report(undefined)
        this.#onOpen?.(undefined)
        this.#onOpen = undefined
        this.#proceed()
        return
      }
      case 'answered': {
        if (this.#state.kind !== 'busy') throw impossible(this.#state.kind, 'answered')
        const { port, batch, sentAtMs } = this.#state
        this.#crashes = 0
        this.#become({ kind: 'idle', port })
        this.#spec.settle(batch, answer.values, this.#spec.clock.nowMs() - sentAtMs)
        if (answer.fault !== undefined || answer.proven) this.#report(answer.fault, answer.reason)
        else if (answer.reason !== undefined) this.#spec.onTrouble(answer.reason)
        this.#proceed()
        return
      }
    }
  }

  #onExit(reason: string): void {
    const batch = this.#state.kind === 'busy' ? this.#state.batch : []
    const cause = this.#refusal?.reason ?? reason
    const passing = this.#refusal?.passing
    const onOpen = this.#onOpen
    const isFinal = onOpen !== undefined && passing === undefined && !this.#spec.isPassing?.()
    this.#refusal = undefined
    this.#unprobe()
    this.#onOpen = undefined
    if (isFinal || this.#closing) this.#become({ kind: 'closed' })
    else {
      const delayMs = passing ? PROBE_MS : Math.min(RESTART_MIN_MS * 2 ** this.#crashes++, RESTART_MAX_MS)
      this.#become({ kind: 'down', timer: this.#spec.clock.setTimer(() => this.#start(), delayMs) })
      this.#report(passing ?? 'down', cause)
    }
    this.#spec.lost(batch)
    for (const item of this.#queue.take(this.#queue.size)) this.#spec.refuse(item)
    onOpen?.(isFinal ? cause : undefined)
    this.#closing?.resolve()
  }

  /** What an idle thread does next. */
  #proceed(): void {
    if (this.#state.kind !== 'idle') return
    const { port } = this.#state
    if (this.#queue.size > 0) this.#send(port, this.#queue.take(this.#spec.maxBatch))
    else if (this.#closing) {
      this.#unprobe()
      this.#become({ kind: 'stopping', port })
      port.post('close')
    } else if (this.#fault && !this.#probe) {
      // Not put off by other batches: those that write nothing come often, and show nothing.
      this.#probe = this.#spec.clock.setTimer(() => {
        this.#probe = undefined
        if (this.#state.kind === 'idle') this.#send(this.#state.port, [])
      }, PROBE_MS)
    }
  }

  #send(port: ThreadPort, batch: readonly Item[]): void {
    this.#become({ kind: 'busy', port, batch, sentAtMs: this.#spec.clock.nowMs() })
    port.post(this.#spec.pack(batch))
  }

  #unprobe(): void {
    if (this.#probe) this.#spec.clock.clearTimer(this.#probe)
    this.#probe = undefined
  }

  #report(fault: Fault | undefined, reason?: string): void {
    const changed = fault !== this.#fault
    this.#fault = fault
    if (fault === undefined) this.#unprobe()
    // A lock that is held for a minute fails some 300 batches with one and the same line.
    if (reason !== undefined && reason !== this.#reason) this.#spec.onTrouble(reason)
    this.#reason = reason
    if (changed) this.#spec.onHealth()
  }

  #become(next: State<Item>): void {
    if (!NEXT[this.#state.kind].includes(next.kind)) throw impossible(this.#state.kind, next.kind)
    this.#state = next
  }
}

export interface BatchThreadSpec<Item> {
  readonly clock: Clock
  readonly maxBatch: number
  readonly maxPending: number
  start(listener: ThreadListener): ThreadPort
  /** The batch as the thread reads it. */
  pack(batch: readonly Item[]): Flat
  /** The thread's answers, in the order of the batch. */
  settle(batch: readonly Item[], values: Flat, durationMs: number): void
  /** The thread ended with this batch in its hands. */
  lost(batch: readonly Item[]): void
  /** The thread ended before this item was sent. */
  refuse(item: Item): void
  /** Whether what keeps it from opening may pass, whatever it says of that itself. */
  isPassing?(): boolean
  /** `fault` has changed. */
  onHealth(): void
  /** Something failed; a line for the operator, given again only after another or after a success. */
  onTrouble(reason: string): void
}

type State<Item> =
  | { readonly kind: 'starting' | 'idle' | 'stopping'; readonly port: ThreadPort }
  | {
      readonly kind: 'busy'
      readonly port: ThreadPort
      readonly batch: readonly Item[]
      readonly sentAtMs: number
    }
  | { readonly kind: 'down'; readonly timer: Timer | undefined }
  | { readonly kind: 'closed' }

type Kind = State<unknown>['kind']

const NEXT: Readonly<Record<Kind, readonly Kind[]>> = {
  starting: ['idle', 'down', 'closed'],
  idle: ['busy', 'stopping', 'down', 'closed'],
  busy: ['idle', 'down', 'closed'],
  down: ['starting', 'closed'],
  stopping: ['closed'],
  closed: [],
}

/** The first restart is soon, as a crash is most often one of a kind; doubled each time up to the longest. */
const RESTART_MIN_MS = 50
const RESTART_MAX_MS = 5_000

/** How often a store with a fault is asked whether it is over; each question may wait `busyTimeoutMs`. */
const PROBE_MS = 250

function impossible(from: Kind, to: string): TypeError {
  return new TypeError(`a thread that is ${from} cannot become ${to}`)
}
