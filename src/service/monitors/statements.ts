import type { CorpusDocument } from '../corpus/corpus.ts'
import { manifestLines } from '../corpus/manifest.ts'

/** The text in which statements are found: for a manifest, the statements of its members, so that a comma after a member is no news. */
export function readableText({ text, kind }: Pick<CorpusDocument, 'text' | 'kind'>): string {
  return kind === 'manifest' ? manifestLines(text).join('\n') : text
}

/**
 * Splits a text into statements: its lines, and the sentences within them, with normalized white space.
 *
 * Passages are split differently after a change above them, but statements stay the same. So comparing statements finds new text, and not
 * text that has only moved.
 */
export function statementsOf(text: string): string[] {
  return text
    .split(/\n|(?<=[.!?]) /)
    .map((statement) => statement.replace(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '')
}
