import { cutText } from '../../protocol/cut-text.ts'
import { setImmediate } from 'node:timers/promises'
import type { ExcerptBudget } from '../corpus/corpus.ts'
import type { DocumentKind } from '../corpus/document-kind.ts'
import { excerptsAround, shorten, storedPassages } from '../corpus/excerpts.ts'
import { EQUAL_TERMS } from '../corpus/frequencies.ts'
import { manifestPassages } from '../corpus/manifest.ts'
import { anyTerm } from '../corpus/match.ts'
import { searchTerms } from '../corpus/query-terms.ts'
import type { Span } from '../corpus/blocks.ts'
import { splitPassages } from '../corpus/passages.ts'
import { rankTexts } from '../corpus/text-ranking.ts'

/** The text from which excerpts are selected. */
interface ExcerptSource {
  readonly text: string
  /** Kind of a document of the index; undefined for a page. */
  readonly kind?: DocumentKind
}

/** The query for which excerpts are selected. */
export interface ExcerptQuery {
  readonly queries: readonly string[]
  readonly objective?: string | undefined
}

/** Maximum number of passages that are ranked; far more than a budget of excerpts has. */
const MAX_RANKED = 100
/** A text is split in parts of this length, in characters, so that a long page does not block the event loop. */
const PART_LENGTH = 16_384
/** Maximum length of the beginning of a text that is searched, in characters. */
const MAX_SEARCHED = 500_000
/** Maximum number of passages that are searched. Prose of the maximum length has about a third of them. */
const MAX_PASSAGES = 5_000

/** The words that the selection leaves out, since there are too many. Each query and the objective keeps as many as the others. */
export function unusedWords(query: ExcerptQuery): readonly string[] {
  return searchTerms(query, EQUAL_TERMS).dropped
}

/**
 * Selects the excerpts of a page: the passages that match the query best, as a search ranks them, with the passages around them. Without a
 * match: the beginning of the text. For a manifest: all passages, the matching ones first. At most 500,000 characters and 5,000 passages
 * are searched, fewer when the signal is aborted. Yields to the event loop.
 */
export async function selectExcerpts(
  { text, kind }: ExcerptSource,
  query: ExcerptQuery,
  budget: ExcerptBudget,
  signal: AbortSignal,
): Promise<string[]> {
  const expression = anyTerm(searchTerms(query, EQUAL_TERMS).queries)
  const isManifest = kind === 'manifest'
  if (expression !== undefined || isManifest) {
    const spans = isManifest ? manifestPassages(text) : await spansOf(text, signal)
    const passages = storedPassages(text, spans, kind, 1)
    const texts = Array.from(passages, ([id, passage]) => [id, passage.text] as const)
    const ranked = expression === undefined ? [] : await rankTexts(texts, expression, MAX_RANKED)
    const matching = ranked.map(({ id }) => id)
    // The beginning of a manifest's text need not be a part of its file, which may have something else between two passages.
    const ids = isManifest ? [...new Set([...matching, ...passages.keys()])] : matching
    if (ids.length > 0) return excerptsAround(ids, passages, budget)
  }
  const beginning = shorten(text, budget.charactersPerResult)
  return beginning === '' ? [] : [beginning]
}

/** The passages of the beginning of a text, split part by part. */
async function spansOf(text: string, signal: AbortSignal): Promise<readonly Span[]> {
  const spans: Span[] = []
  const limit = Math.min(text.length, MAX_SEARCHED)
  let start = 0
  while (start < limit && spans.length < MAX_PASSAGES && !signal.aborted) {
    // oxlint-disable-next-line no-await-in-loop -- the event loop gets its turn between two parts
    await setImmediate()
    const end = partEnd(text, start)
    const part = text.slice(start, end)
    const trimmed = part.trimStart()
    const offset = start + part.length - trimmed.length
    for (const span of splitPassages(trimmed.trimEnd()))
      spans.push({ start: offset + span.start, end: offset + span.end })
    start = end
  }
  return spans.slice(0, MAX_PASSAGES)
}

/** The end of the part of a text that begins at `start`: after a paragraph, else after a line or a word. */
function partEnd(text: string, start: number): number {
  const limit = start + PART_LENGTH
  if (limit >= text.length) return text.length
  const window = text.slice(start, limit)
  for (const separator of ['\n\n', '\n', ' ']) {
    const found = window.lastIndexOf(separator)
    if (found > PART_LENGTH / 2) return start + found + separator.length
  }
  return cutText(text, limit).length
}
