import type { Client } from './client.ts'

/** One reading of the admin listener's `/metrics`. */
export class Metrics {
  readonly #samples: readonly { name: string; labels: Readonly<Record<string, string>>; value: number }[]

  static async read(admin: Client): Promise<Metrics> {
    const { body } = await admin.get('/metrics')
    return new Metrics(body)
  }

  constructor(text: string) {
    this.#samples = text
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
      .map(line => {
        const [, name = '', labels = '', value = ''] =
          /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line) ?? []
        const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
        return {
          name,
          labels: Object.fromEntries(pairs.map(([, key, text]) => [key, text])),
          value: Number(value),
        }
      })
  }

  /** The sum of all samples of `name` that carry these labels; 0 when there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.#samples
      .filter(sample => sample.name === name)
      .filter(sample => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
      .reduce((total, sample) => total + sample.value, 0)
  }

  /** Every value that this label has anywhere. */
  values(label: string): Set<string> {
    return new Set(this.#samples.flatMap(({ labels }) => labels[label] ?? []))
  }
}
