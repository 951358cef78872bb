import { stemsOf } from '../words/vocabulary.ts'

/** The cells of a row of a table, without the space around them. */
export function cellsOf(row: string): string[] {
  return row
    .trim()
    .replace(/^\||(?<!\\)\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())
}

/** A row of a table, and the cells of its header. */
interface TableRow {
  readonly text: string
  readonly columns?: readonly string[]
}

/**
 * The cell below the column that has the most of these words. Undefined if the unit is no row, no column has one of them, or the
 * column is the first, whose cells name the rows.
 */
export function cellFor({ text, columns = [] }: TableRow, wanted: ReadonlySet<string>): string | undefined {
  const cells = columns.length === 0 ? [] : cellsOf(text)
  let best = 0
  let found: string | undefined
  for (const [index, column] of columns.entries()) {
    const stems = stemsOf(column)
    const shared = [...stems].filter((one) => wanted.has(one)).length
    const share = stems.size === 0 ? 0 : shared + shared / stems.size
    if (index === 0 || share <= best) continue
    best = share
    found = cells[index]
  }
  return found === '' ? undefined : found
}
