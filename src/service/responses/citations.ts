import type { Citation } from '../../protocol/output.ts'
import type { UrlCitation } from '../../protocol/response.ts'
import type { AnswerContent } from '../conversations/content.ts'
import type { Span } from '../corpus/blocks.ts'

/** Maximum number of citations of an answer. */
const MAX_CITATIONS = 500

/**
 * The citations of an answer, in the order of the text. Each belongs to the field that it is the source of; in prose, to each paragraph
 * that its excerpts contain. A citation without such a field or paragraph belongs to the whole text.
 */
export function citationsOf({ text, fields, basis, isFound }: AnswerContent): UrlCitation[] {
  if (!isFound) return []
  const paragraphs = fields.size === 0 ? paragraphsOf(text) : []
  const whole: Span = { start: 0, end: text.length }
  return basis
    .flatMap(({ field, citations }) =>
      (citations ?? []).flatMap((citation) => {
        const value = placeOf(field, fields)
        const spans = value === undefined ? cited(citation, paragraphs) : [value]
        return (spans.length === 0 ? [whole] : spans).map((span) => annotation(citation, span))
      }),
    )
    .toSorted((a, b) => a.start_index - b.start_index)
    .slice(0, MAX_CITATIONS)
}

/** The position of a field: `people.0.name` and `people[0]` are in the field `people`, unless a longer name fits. */
function placeOf(path: string, fields: AnswerContent['fields']): Span | undefined {
  for (let end = path.length; end > 0; end--) {
    const isWhole = end === path.length || path[end] === '.' || path[end] === '['
    const span = isWhole ? fields.get(path.slice(0, end)) : undefined
    if (span !== undefined) return span
  }
  return undefined
}

interface Paragraph extends Span {
  readonly words: string
}

function paragraphsOf(text: string): Paragraph[] {
  return [...text.matchAll(/\S(?:[^\n]|\n(?!\s*\n))*/g)].map(({ 0: found, index }) => {
    const paragraph = found.trimEnd()
    return { start: index, end: index + paragraph.length, words: spaced(paragraph) }
  })
}

/** The paragraphs that an excerpt of the citation contains. */
function cited({ excerpts }: Citation, paragraphs: readonly Paragraph[]): readonly Span[] {
  const passages = (excerpts ?? []).map(spaced)
  return paragraphs.filter(({ words }) => passages.some((passage) => passage.includes(words)))
}

/** The text with single spaces, since line breaks in a page may differ from line breaks in a quotation. */
function spaced(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}

function annotation({ url, title }: Citation, { start, end }: Span): UrlCitation {
  return { type: 'url_citation', url, title: title ?? null, start_index: start, end_index: end }
}
