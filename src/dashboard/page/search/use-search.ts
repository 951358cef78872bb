import { useEffect, useState } from 'react'
import type { SearchResponse } from 'rivulet'
import type { Live } from 'rivulet/live'
import type { DashboardViews } from '../../views.ts'
/** How long a text stays the same before it is searched, in ms. */
const SETTLED = 250

export interface SearchState {
  readonly state: 'idle' | 'searching' | 'done' | 'failed'
  readonly response: SearchResponse | undefined
  readonly query: string
  readonly error: Error | undefined
}

const IDLE: SearchState = { state: 'idle', response: undefined, query: '', error: undefined }

export function useSearch(live: Pick<Live<DashboardViews>, 'search'>, query: string): SearchState {
  const [state, setState] = useState(IDLE)
  useEffect(() => {
    if (query === '') {
      setState(IDLE)
      return undefined
    }
    setState((before) => ({ ...before, state: 'searching' }))
    const abort = new AbortController()
    const timer = setTimeout(() => {
      live.search({ search_queries: [query] }, { signal: abort.signal }).then(
        (response) => {
          if (!abort.signal.aborted) setState({ state: 'done', response, query, error: undefined })
        },
        (error: unknown) => {
          if (!abort.signal.aborted)
            setState({ state: 'failed', response: undefined, query, error: error instanceof Error ? error : new Error(String(error)) })
        },
      )
    }, SETTLED)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [live, query])
  return state
}
