/** One figure of a bench: what was measured beside what is wanted. */
export interface Figure {
  readonly what: string
  readonly measured: number
  readonly unit: string
  readonly wanted: { readonly atLeast: number } | { readonly atMost: number }
}

export interface Bench {
  readonly name: string
  /** `short` only shows that it works: its figures mean little. */
  run(options: { short: boolean; say: (line: string) => void }): Promise<Figure[]>
}

export function reached({ measured, wanted }: Figure): boolean {
  return 'atLeast' in wanted ? measured >= wanted.atLeast : measured <= wanted.atMost
}

export function describeFigure(figure: Figure): string {
  const { what, measured, unit, wanted } = figure
  const bound = 'atLeast' in wanted ? `at least ${wanted.atLeast}` : `at most ${wanted.atMost}`
  return `${reached(figure) ? 'reached' : 'SHORT  '}  ${what}: ${rounded(measured)} ${unit} (wanted: ${bound})`
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

/** The value that the share `rank` of `values` does not exceed. */
export function percentile(values: readonly number[], rank: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(rank * sorted.length) - 1)] ?? Number.NaN
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}
