/** Lines of a table: the first column to the left, figures to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map(row => row[column]?.length ?? 0)))
  return all.map(row =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return column === 0 ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  '),
  )
}

/** A whole number with its thousands apart. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}
