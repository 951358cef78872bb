import { isObject, isText } from '../../protocol/json.ts'
import { subjectSource } from '../../protocol/gateway-event.ts'
import type { GatewaySearch } from '../../protocol/gateway.ts'
import type { SearchRequest, SearchResult } from '../../protocol/search.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { pathPart, shownId } from './resource.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** A search of a session. */
interface RecordedSearch {
  readonly request: SearchRequest
  readonly results: readonly SearchResult[]
  /** When it was recorded, in Unix ms. */
  readonly recorded: number
  /** Set if a part was too long for the row: long texts end with `…`, and long lists have fewer elements. */
  readonly truncated?: true
}

/** The searches of a session of one subject. Its path is `[sub, session]`. */
export interface SearchesRow {
  readonly session: string
  /** The last 20, oldest first. */
  readonly searches: readonly RecordedSearch[]
}

/** Maximum number of searches of a session, and maximum size of one of them, in bytes. Together they fit into the state of a process. */
const MAX_SEARCHES = 20
const MAX_REQUEST = 2_048
const MAX_RESULTS = 9_216

/**
 * The searches that subjects have made through a gateway, by `[sub, session]`.
 *
 * @param options `timeToLive`: default 30 days.
 */
export function searchesView(options: ViewAge = {}): View<SearchesRow> {
  const timeToLive = ageOf(options, 30 * DAY)
  return view({
    version: 1,
    types: ['gateway.search'],
    timeToLive,
    key: ({ data }) => {
      // A program may append anything.
      if (!isObject(data) || !isText(data['sub']) || !isText(data['session'])) return undefined
      return [pathPart(data['sub']), pathPart(data['session'])]
    },
    source: ([sub]) => (sub === undefined ? undefined : subjectSource(sub)),
    reduce: (row: SearchesRow | undefined, { data, recorded, revision }): SearchesRow => {
      const { session = shownId(data.session), searches = [] } = row ?? {}
      // The same search again.
      if (revision > 1) return { session, searches }
      return { session, searches: [...searches, recordedSearch(data, recorded)].slice(-MAX_SEARCHES) }
    },
  })
}

function recordedSearch({ request, response, truncated }: GatewaySearch, recorded: number): RecordedSearch {
  const asked = bounded(request, MAX_REQUEST, { search_queries: [] })
  const found = bounded<readonly SearchResult[], readonly []>(resultsOf(response), MAX_RESULTS, [])
  const isTruncated = truncated === true || asked.isTruncated || found.isTruncated
  return {
    request: asked.value,
    results: found.value,
    recorded,
    ...(isTruncated && { truncated: true }),
  }
}

/** The service may send anything. */
function resultsOf(response: unknown): readonly SearchResult[] {
  const results = isObject(response) ? response['results'] : undefined
  return Array.isArray(results) ? results : []
}
