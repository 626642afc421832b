import { type Flat, VERDICT } from './protocol.ts'

/** Chore: work for the writer beside the orders, in the same groups. It ends once, and nobody takes it back. */
export class Chore {
  /** Its kind and fields, as they cross to the writer. */
  readonly fields: Flat
  onEnd = () => {}
  readonly #resolve: (answer: Flat | undefined) => void

  constructor(fields: Flat, resolve: (answer: Flat | undefined) => void) {
    this.fields = fields
    this.#resolve = resolve
  }

  /** Takes its answer from `at` on; where the next one begins. */
  answer(values: Flat, at: number): number {
    if (values[at] !== VERDICT.done) {
      this.end(undefined)
      return at + 1
    }
    const from = at + 2
    const to = from + Number(values[at + 1])
    this.end(values.slice(from, to))
    return to
  }

  /** Undefined: the store could not do it, or cannot tell whether it has. */
  end(answer: Flat | undefined): void {
    this.onEnd()
    this.#resolve(answer)
  }
}
