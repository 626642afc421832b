/** What must hold, whatever the schedule. */
export const SENTENCES = {
  fresh: 'no read begun after the acknowledgement returns an older version',
  once: 'while a load runs that nothing has put out of date, no other one of its key begins',
  'given up': 'what a load brings after it was given up on is for nobody',
  ends: 'every reader gets one end, in its time, and no error but its own load’s or its own signal’s',
  rest: 'at rest nothing is left: no load, no permit, no timer, no listener, no rejection',
} as const
export type Sentence = keyof typeof SENTENCES

/** What was found against the sentences, in words; the first of each. */
export class Verdict {
  readonly #faults = new Map<Sentence, string>()

  blame(sentence: Sentence, words: string): void {
    if (!this.#faults.has(sentence)) this.#faults.set(sentence, words)
  }

  faultOf(sentence: Sentence): string | undefined {
    return this.#faults.get(sentence)
  }
}
