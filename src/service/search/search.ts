import { randomUUID } from 'node:crypto'
import type { Warning } from '../../protocol/problem.ts'
import type { SearchMode, SearchResult } from '../../protocol/search.ts'
import type { SourcePolicy } from '../../protocol/task.ts'
import type { Corpus, DocumentHit, ExcerptBudget } from '../corpus/corpus.ts'

/** What both search endpoints come down to. */
export interface Search {
  readonly queries: readonly string[]
  readonly objective?: string | undefined
  readonly mode: SearchMode
  readonly maxResults?: number | undefined
  /** Characters of one result's excerpts, at the most. */
  readonly maxCharsPerResult?: number | undefined
  /** Characters of all results' excerpts, at the most. */
  readonly maxCharsTotal?: number | undefined
  readonly sourcePolicy?: SourcePolicy | undefined
}

/** What a search found, and what of it was adjusted. */
export interface Found {
  readonly results: SearchResult[]
  readonly warnings: Warning[]
}

/** Results when no number is asked for; beyond the interface document. */
const DEFAULT_RESULTS = 10
/** Results, at the most. */
const MAX_RESULTS = 40
/** Characters of excerpts, at the least; beyond the interface document. */
const MIN_CHARACTERS = 1_000

/** What a mode gives out: the more results there may be, the less each may say. In characters, but for `excerpts`. */
const MODES = {
  turbo: { perResult: 1_500, total: 8_000, excerpts: 1 },
  fast: { perResult: 3_000, total: 16_000, excerpts: 2 },
  basic: { perResult: 5_000, total: 32_000, excerpts: 4 },
  advanced: { perResult: 10_000, total: 64_000, excerpts: 8 },
} as const satisfies Readonly<Record<SearchMode, object>>

/** Searches the documents (§4.6, §4.7). */
export function search(corpus: Corpus, asked: Search): Found {
  const warnings: Warning[] = []
  const limit = adjusted(warnings, 'max_results', asked.maxResults ?? DEFAULT_RESULTS, 1, MAX_RESULTS)
  const perResult =
    asked.maxCharsPerResult === undefined
      ? undefined
      : adjusted(warnings, 'max_chars_per_result', asked.maxCharsPerResult, MIN_CHARACTERS)
  const total =
    asked.maxCharsTotal === undefined
      ? undefined
      : adjusted(warnings, 'max_chars_total', asked.maxCharsTotal, MIN_CHARACTERS)
  const { queries, objective, sourcePolicy } = asked
  const budget = { ...excerptBudget(asked.mode, limit, perResult), charactersInTotal: total }
  const hits = corpus.search({ queries, objective, sourcePolicy, limit }, budget)
  return { results: hits.map(toResult), warnings }
}

/** An id as the search endpoints give them out. */
export function newId(kind: 'search' | 'session'): string {
  return `${kind}_${randomUUID().replaceAll('-', '')}`
}

function adjusted(warnings: Warning[], name: string, value: number, min: number, max = Infinity): number {
  const fitting = Math.min(max, Math.max(min, value))
  if (fitting !== value) {
    warnings.push({
      type: 'input_validation_warning',
      message: `${name} was adjusted from ${value} to ${fitting}`,
      detail: { parameter: name, given: value, used: fitting },
    })
  }
  return fitting
}

function excerptBudget(mode: SearchMode, limit: number, perResult: number | undefined): ExcerptBudget {
  const { perResult: most, total, excerpts } = MODES[mode]
  const share = Math.min(most, Math.max(MIN_CHARACTERS, Math.floor(total / limit)))
  return { charactersPerResult: perResult ?? share, excerptsPerResult: excerpts }
}

function toResult({ url, title, publishDate, excerpts }: DocumentHit): SearchResult {
  return { url, title, publish_date: publishDate, excerpts }
}
