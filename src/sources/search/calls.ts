import type { SearchRequest, SearchResponse } from '../../protocol/search.ts'
import type { Context } from '../context.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { searchEach } from './each.ts'
import type { SearchEachOptions, SearchOutcome, SearchQueries } from './each.ts'
import { search } from './search.ts'

/** The calls of searches. */
export interface SearchCalls {
  /** Searches (§4.7). Emits the response, then completes. */
  (request: SearchRequest, options?: SourceOptions): AwaitableSource<SearchResponse>
  /** Searches for each query, some at a time, within the quota (§4.7). Emits the response or the error of each. */
  each(queries: SearchQueries, options?: SearchEachOptions): Source<SearchOutcome>
}

/** Creates the calls of searches. */
export function searchCalls(context: Context): SearchCalls {
  const single = (request: SearchRequest, own?: SourceOptions) => search(context, request, own)
  const each = (queries: SearchQueries, own?: SearchEachOptions) => searchEach(context, queries, own)
  return Object.assign(single, { each })
}
