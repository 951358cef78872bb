import { useEffect, useId, useMemo, useState } from 'react'
import type { FormEvent, ReactNode } from 'react'
import type { SearchResult } from 'rivulet'
import { siteOf } from '../evidence/address.ts'
import { oneLine } from '../evidence/evidence.ts'
import { Quote } from '../evidence/quote.tsx'
import { useSearch, useView } from 'rivulet/react'
import type { UseSearchResult } from 'rivulet/react'
import { dateText } from '../monitors/timeline.ts'
import { ExternalLink } from '../parts/external-link.tsx'
import { formats } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { Loading, Notice } from '../parts/notice.tsx'
import { useDashboard, useLogStatus } from '../dashboard.ts'
import { hashOf, replaceRoute } from '../route.ts'
import { Foreign, visible } from '../parts/foreign.tsx'
import type { SearchesRow } from '../rows.ts'

/** Excerpts of a result that are shown at once. */
const EXCERPTS = 2

/** Search of the web, or of the documents of the service, as the reader types. */
export function SearchSection({ query }: { readonly query: string }): ReactNode {
  const id = useId()
  const { live } = useDashboard()
  const { status } = useLogStatus()
  const found = useSearch(live)
  const { search } = found
  const [text, setText] = useState(query)
  const [asked, setAsked] = useState(query)
  const canSearch = status?.can.search ?? true

  // An address that was opened by a link or by the history.
  if (query !== asked) {
    setAsked(query)
    setText(query)
  }
  useEffect(() => search(asked), [search, asked])

  const type = (value: string) => {
    setText(value)
    setAsked(value.trim())
    replaceRoute({ section: 'search', query: value.trim() })
  }
  return (
    <div className="column">
      <h1 tabIndex={-1}>Search</h1>
      <form role="search" className="search" onSubmit={(event: FormEvent) => event.preventDefault()}>
        <label htmlFor={id} className="visually-hidden">
          Search the web through the service
        </label>
        <Icon name="search" />
        <input
          id={id}
          type="search"
          value={text}
          autoComplete="off"
          spellCheck={false}
          enterKeyHint="search"
          placeholder="Search through the service"
          disabled={!canSearch}
          onChange={(event) => type(event.target.value)}
        />
      </form>
      <p className="visually-hidden" role="status">
        {announcementOf(found, asked)}
      </p>
      {canSearch ? (
        <Results found={found} query={asked} />
      ) : (
        <Notice icon="search" title="This dashboard cannot search">
          <p>
            It has no connection to the service. <code>rivulet dashboard</code> takes one from the same
            settings as the other commands.
          </p>
        </Notice>
      )}
    </div>
  )
}

function announcementOf({ status, results }: UseSearchResult, query: string): string {
  if (status !== 'success') return ''
  return `${resultsText(results.length)} for ${visible(query)}`
}

function resultsText(count: number): string {
  if (count === 0) return 'No results'
  return count === 1 ? '1 result' : `${formats.number(count)} results`
}

function Results({ found, query }: { readonly found: UseSearchResult; readonly query: string }): ReactNode {
  const { status, response, error } = found
  if (query === '') {
    return (
      <>
        <RecentSearches />
        <Notice icon="search" title="Type to search">
          <p>Results come with their excerpts. A click on an excerpt shows it within its document.</p>
        </Notice>
      </>
    )
  }
  if (status === 'error') {
    return (
      <Notice icon="off" title="The search failed">
        <p role="status">{error?.message}</p>
      </Notice>
    )
  }
  if (response === undefined) return <Loading what="results" rows={6} />
  if (response.results.length === 0) {
    return (
      <Notice icon="search" title="Nothing found">
        <p>
          No page has <q>{visible(query)}</q>.
        </p>
      </Notice>
    )
  }
  return (
    <div className="results" aria-busy={status === 'pending'}>
      <p className="muted small">
        {resultsText(response.results.length)} for{' '}
        <q>
          <Foreign>{query}</Foreign>
        </q>
      </p>
      {response.warnings?.map((warning, index) => (
        <p key={index} className="note warn" dir="auto">
          {visible(warning.message)}
        </p>
      ))}
      <ol className="result-list">
        {response.results.map((result, index) => (
          <Result key={`${index} ${result.url}`} result={result} />
        ))}
      </ol>
    </div>
  )
}

function Result({ result }: { readonly result: SearchResult }): ReactNode {
  const { url, excerpts } = result
  const title = result.title ?? undefined
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? excerpts : excerpts.slice(0, EXCERPTS)
  return (
    <li className="result">
      <h2>
        <ExternalLink url={url}>
          <Foreign>{oneLine(title ?? url, 160)}</Foreign>
        </ExternalLink>
      </h2>
      <p className="source">
        <span className="site">
          <Foreign>{siteOf(url)}</Foreign>
        </span>
        {typeof result.publish_date === 'string' && <span>{dateText(result.publish_date)}</span>}
      </p>
      {shown.map((excerpt, index) => (
        <Quote key={index} quotation={{ url, title, excerpt }} />
      ))}
      {shown.length < excerpts.length && (
        <button type="button" className="button small" onClick={() => setWhole(true)}>
          {formats.number(excerpts.length - shown.length)} more{' '}
          {excerpts.length - shown.length === 1 ? 'excerpt' : 'excerpts'}
        </button>
      )}
    </li>
  )
}

/** Searches that are shown at first. */
const RECENT = 12

function RecentSearches(): ReactNode {
  const { live } = useDashboard()
  const { rows } = useView(live.view('searches'))
  const recent = useMemo(() => recentQueries(rows.values()), [rows])
  if (recent.length === 0) return null
  return (
    <section className="recent" aria-labelledby="recent-title">
      <h2 id="recent-title">Recent searches</h2>
      <ul>
        {recent.slice(0, RECENT).map((query) => (
          <li key={query}>
            <a href={hashOf({ section: 'search', query })}>
              <Foreign>{oneLine(query, 60)}</Foreign>
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}

/**
 * The queries of recorded searches, the latest first, each once. A query that is the beginning of a later one was only a step of typing it,
 * and is left out.
 */
export function recentQueries(rows: Iterable<SearchesRow>): string[] {
  const queries = [...rows]
    .flatMap(({ searches }) => searches)
    .toSorted((a, b) => b.recorded - a.recorded)
    .flatMap(({ request }) => request.search_queries?.[0] ?? [])
  const kept: string[] = []
  for (const query of queries) {
    if (!kept.some((later) => later.startsWith(query))) kept.push(query)
  }
  return kept
}
