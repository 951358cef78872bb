import type { Warning } from '../../protocol/problem.ts'
import type { SearchMode, SearchResult } from '../../protocol/search.ts'
import type { SourcePolicy } from '../../protocol/task.ts'
import type { Corpus, DocumentHit, ExcerptBudget } from '../corpus/corpus.ts'
import { adjusted, MIN_CHARACTERS, wordsLeftOut } from '../http/parameter-warnings.ts'

/** The parameters of both search endpoints. */
export interface SearchParameters {
  readonly queries: readonly string[]
  readonly objective?: string | undefined
  readonly mode: SearchMode
  readonly maxResults?: number | undefined
  /** Maximum length of one result's excerpts, in characters. */
  readonly maxCharsPerResult?: number | undefined
  /** Maximum length of all excerpts, in characters. */
  readonly maxCharsTotal?: number | undefined
  readonly sourcePolicy?: SourcePolicy | undefined
}

/** The results of a search, and warnings about adjusted parameters. */
export interface SearchOutcome {
  readonly results: SearchResult[]
  readonly warnings: Warning[]
}

/** Default number of results; beyond the interface document. */
const DEFAULT_RESULTS = 10
/** Maximum number of results. */
const MAX_RESULTS = 40

/** Limits of each mode: characters per result and in total, and excerpts per result. */
const MODES = {
  turbo: { perResult: 1_500, total: 8_000, excerpts: 1 },
  fast: { perResult: 3_000, total: 16_000, excerpts: 2 },
  basic: { perResult: 5_000, total: 32_000, excerpts: 4 },
  advanced: { perResult: 10_000, total: 64_000, excerpts: 8 },
} as const satisfies Readonly<Record<SearchMode, object>>

/** Searches the documents (§4.6, §4.7). */
export function search(corpus: Corpus, request: SearchParameters): SearchOutcome {
  const warnings: Warning[] = []
  const limit = adjusted(warnings, 'max_results', request.maxResults ?? DEFAULT_RESULTS, {
    min: 1,
    max: MAX_RESULTS,
  })
  const perResult =
    request.maxCharsPerResult === undefined
      ? undefined
      : adjusted(warnings, 'max_chars_per_result', request.maxCharsPerResult, { min: MIN_CHARACTERS })
  const total =
    request.maxCharsTotal === undefined
      ? undefined
      : adjusted(warnings, 'max_chars_total', request.maxCharsTotal, { min: MIN_CHARACTERS })
  const { queries, objective, sourcePolicy } = request
  const budget = { ...excerptBudget(request.mode, limit, perResult), charactersInTotal: total }
  const unused = corpus.unusedTerms({ queries, objective })
  warnings.push(...wordsLeftOut(unused))
  const hits = corpus.search({ queries, objective, sourcePolicy, limit }, budget)
  return { results: hits.map(toResult), warnings }
}

function excerptBudget(mode: SearchMode, limit: number, perResult: number | undefined): ExcerptBudget {
  const { perResult: max, total, excerpts } = MODES[mode]
  const share = Math.min(max, Math.max(MIN_CHARACTERS, Math.floor(total / limit)))
  return { charactersPerResult: perResult ?? share, excerptsPerResult: excerpts }
}

function toResult({ url, title, publishDate, excerpts }: DocumentHit): SearchResult {
  return { url, title, publish_date: publishDate, excerpts }
}
