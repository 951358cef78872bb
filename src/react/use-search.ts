import { useCallback, useEffect, useRef, useState } from 'react'
import type { Live } from '../live/live.ts'
import type { SearchRequest, SearchResponse, SearchResult } from '../protocol/search.ts'
import type { ViewShapes } from '../protocol/live.ts'

/** Settings of `useSearch`. */
export interface UseSearchOptions {
  /** Time after the last call of `search` until its request is sent, in ms. Default 250. */
  readonly debounce?: number
}

/** The result of `useSearch`. */
export interface UseSearchResult {
  /** Searches for a text or a whole request, which replaces the last one. */
  readonly search: (query: string | SearchRequest) => void
  /** The results of the last answer, also while the next one is awaited and after an error. Empty before the first answer. */
  readonly results: readonly SearchResult[]
  /** The whole answer that `results` are from. */
  readonly response: SearchResponse | undefined
  /** `pending` from the call of `search` to its answer. */
  readonly status: 'idle' | 'pending' | 'success' | 'error'
  /** Why the last search failed: a `LiveError`. */
  readonly error: Error | undefined
}

type SearchState = Omit<UseSearchResult, 'search' | 'results'>

const IDLE: SearchState = { status: 'idle', response: undefined, error: undefined }
const NONE: readonly SearchResult[] = []

/**
 * Searches as the user types. If calls follow each other quickly, only the last one is sent. The next call aborts a request that is in
 * flight, and its answer is ignored. The last answer stays until the next one. Unmounting aborts.
 *
 * ```ts
 * import { createElement } from 'react'
 * import type { Live } from 'rivulet/live'
 * import { useSearch } from 'rivulet/react'
 *
 * function Search({ live }: { live: Live<{}> }) {
 *   const { search, results, status } = useSearch(live)
 *   return createElement(
 *     'form',
 *     { role: 'search', 'aria-busy': status === 'pending' },
 *     createElement('input', { type: 'search', onChange: (event) => search(event.currentTarget.value) }),
 *     results.map(({ url, title }) => createElement('a', { key: url, href: url }, title ?? url)),
 *   )
 * }
 * ```
 */
export function useSearch(
  live: Pick<Live<ViewShapes>, 'search'>,
  { debounce = 250 }: UseSearchOptions = {},
): UseSearchResult {
  // Answers of another connection are dropped, since they were made with other rights.
  const [{ of, ...state }, setState] = useState<SearchState & { readonly of: unknown }>({ ...IDLE, of: live })
  const abortLast = useRef<() => void>(() => {})
  const session = useRef<string>(undefined)

  const search = useCallback(
    (query: string | SearchRequest) => {
      abortLast.current()
      const request = requestOf(query, session.current)
      if (request === undefined) return setState({ ...IDLE, of: live })

      const controller = new AbortController()
      const { signal } = controller
      const update = (change: Partial<SearchState>) => {
        if (!signal.aborted)
          setState((last) => ({ ...(last.of === live ? last : IDLE), ...change, of: live }))
      }
      const send = () => {
        live.search(request, { signal }).then(
          (response) => {
            if (!signal.aborted) session.current = response.session_id
            update({ status: 'success', response, error: undefined })
          },
          (error: unknown) => {
            // The session may be why: it is of the subject of another token, for instance.
            if (!signal.aborted) session.current = undefined
            update({ status: 'error', error: asError(error) })
          },
        )
      }
      const timer = setTimeout(send, debounce)
      abortLast.current = () => {
        clearTimeout(timer)
        controller.abort()
      }
      update({ status: 'pending', error: undefined })
    },
    [live, debounce],
  )
  useEffect(
    () => () => {
      abortLast.current()
      session.current = undefined
      // A component that React hides is not rendered anew when it is shown again.
      setState((last) =>
        last.status === 'pending'
          ? { ...last, status: last.response === undefined ? 'idle' : 'success' }
          : last,
      )
    },
    [live],
  )

  const { status, response, error } = of === live ? state : IDLE
  return { search, results: response?.results ?? NONE, response, status, error }
}

function requestOf(query: string | SearchRequest, session: string | undefined): SearchRequest | undefined {
  if (typeof query !== 'string') return query
  const text = query.trim()
  if (text === '') return undefined
  const request: SearchRequest = { search_queries: [text], mode: 'fast' }
  return session === undefined ? request : { ...request, session_id: session }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
