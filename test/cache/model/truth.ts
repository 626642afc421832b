/** Versions of records by name; a record that is not there stands at 0, which is "does not exist". */
export type Versions = Readonly<Record<string, number>>

export const RECORDS: readonly string[] = ['a', 'b', 'c']

/** A question is about the records that its letters name, and carries a tag of each. */
export const recordsOf = (question: string): string[] => [...question]
export const tagOf = (record: string): string => `record:${record}`

/** The versions of some records, chosen from those of all. */
export function pick(versions: Versions, records: readonly string[]): Versions {
  return Object.fromEntries(records.map(record => [record, versions[record] ?? 0]))
}

export function latest(one: Versions, other: Versions): Versions {
  const later = (record: string) => Math.max(one[record] ?? 0, other[record] ?? 0)
  return Object.fromEntries(RECORDS.map(record => [record, later(record)]))
}

/** The source of truth: what a commit has made of each record. A version only rises. */
export class Truth {
  #versions: Versions

  constructor(versions: Versions) {
    this.#versions = versions
  }

  get now(): Versions {
    return this.#versions
  }

  /** What these records have become. */
  commit(records: readonly string[]): Versions {
    const raised = Object.fromEntries(records.map(record => [record, (this.#versions[record] ?? 0) + 1]))
    this.#versions = { ...this.#versions, ...raised }
    return raised
  }
}
