import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import MarkdownIt from 'markdown-it'

const ROOT = resolve(import.meta.dirname, '../..')

/** A table of a page. Its cells are Markdown: names in them have their backticks. */
export interface Table {
  /** The headings above it, from that of the page to the nearest one, without their marks. */
  readonly headings: readonly string[]
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** The tables of a page, which is named by its path in the repository. */
export function tablesOf(page: string): readonly Table[] {
  const tokens = new MarkdownIt().parse(readFileSync(join(ROOT, page), 'utf8'), {})
  const tables: { headings: string[]; head: string[]; rows: string[][] }[] = []
  let headings: string[] = []
  for (const [index, { type, tag }] of tokens.entries()) {
    const { content = '' } = tokens[index + 1] ?? {}
    const table = tables.at(-1)
    if (type === 'heading_open') headings = [...headings.slice(0, Number(tag.slice(1)) - 1), content]
    if (type === 'table_open') tables.push({ headings, head: [], rows: [] })
    if (type === 'tr_open' && tokens[index - 1]?.type !== 'thead_open') table?.rows.push([])
    if (type === 'th_open') table?.head.push(content)
    if (type === 'td_open') table?.rows.at(-1)?.push(content)
  }
  return tables
}

/** The rows of the only table of a page whose first column has this heading, below the heading of a section if one is given. */
export function rowsOf(page: string, column: string, section?: string): Table['rows'] {
  const tables = tablesOf(page).filter(
    ({ head, headings }) => head[0] === column && (section === undefined || headings.includes(section)),
  )
  const [table] = tables
  if (table === undefined || tables.length > 1)
    throw new Error(`${page}: ${tables.length} tables begin with the column ${column} ${section ?? ''}`)
  return table.rows
}

/** The pieces of code in a cell, without their backticks. */
export function codeIn(cell = ''): string[] {
  return Array.from(cell.matchAll(/`([^`\n]+)`/g), ([, code = '']) => code)
}

/** A cell without backticks. */
export function plain(cell = ''): string {
  return cell.replaceAll('`', '')
}

/** The names that pieces of code begin with: `timer` for `timer(name, at)`. */
export function namesIn(cell = ''): string[] {
  return codeIn(cell).flatMap((code) => /^\w+/.exec(code)?.[0] ?? [])
}
