import type { SearchRequest, SearchResult } from '../../protocol/search.ts'

/** A search of a session. */
export interface RecordedSearch {
  readonly request: SearchRequest
  readonly results: readonly SearchResult[]
  /** When it was recorded, in Unix ms. */
  readonly recorded: number
  /** Where a part was too long for the row: long texts end with `…`, and long lists have fewer elements. */
  readonly truncated?: true
}

/** The searches of a session of one subject. Its path is `[sub, session]`. */
export interface SearchesRow {
  readonly session: string
  /** The last 20, oldest first. */
  readonly searches: readonly RecordedSearch[]
}
