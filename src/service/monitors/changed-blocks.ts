import type { Passage } from '../corpus/corpus.ts'
import type { Heading } from '../processor/passages/units.ts'
import type { ChangedBlock } from './interest.ts'
import { readableText, statementsOf } from './statements.ts'

/** Number of characters before a passage in which its headings are searched. */
const MAX_ABOVE = 40_000
const HEADING = /^ {0,3}(#{1,6})\s+(\S.{0,300})/
/** Blank lines, and the beginnings of list items, headings and table rows, separate blocks. */
const BETWEEN_BLOCKS = /\n\s*\n|\n(?=\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|\|)\s)/

/** The blocks of a passage that have some of these statements. `text` is the readable text of its document. */
export function changedBlocks(
  passage: Passage,
  statements: readonly string[],
  text: string | undefined,
): ChangedBlock[] {
  const isNew = new Set(statements)
  const { title, url } = passage
  const readable = readableText(passage)
  let headings = text === undefined ? [] : headingsBefore(text, readable)
  return readable.split(BETWEEN_BLOCKS).flatMap((block) => {
    const above = headings.map((heading) => heading.text).filter((heading) => heading !== title)
    headings = below(headings, block)
    const changed = statementsOf(block).filter((statement) => isNew.has(statement))
    if (changed.length === 0) return []
    return [{ statements: changed, text: block, headings: above, passage: readable, title, url }]
  })
}

function headingsBefore(text: string, passage: string): readonly Heading[] {
  const at = text.indexOf(passage)
  const above = text.slice(Math.max(0, at - MAX_ABOVE), Math.max(0, at))
  return above.split('\n').reduce(below, [])
}

/** The open headings after a line, or a block that begins with a heading. */
function below(open: readonly Heading[], line: string): readonly Heading[] {
  const [, marks = '', text = ''] = HEADING.exec(line) ?? []
  if (marks === '') return open
  return [...open.filter(({ level }) => level < marks.length), { level: marks.length, text: text.trim() }]
}
