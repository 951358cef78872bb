import type { DatabaseSync } from 'node:sqlite'
import { type Clock, realTimeOf } from '../clock.ts'
import type { CorpusWithPages } from '../corpus/open-corpus.ts'
import type { PageWriter } from '../corpus/page-index.ts'
import type { Isolated } from '../isolated/isolated.ts'
import type { Web } from '../web/safe-fetch.ts'
import { WebError } from '../web/web-error.ts'
import { isolatedReaders, UnreadError } from './readers.ts'
import { createRefresh, type HostPause } from './refresh.ts'
import { createRobots } from './robots-access.ts'
import { shownUrl } from './source.ts'
import type { SourceHeaders } from './source-headers.ts'
import { SourceError } from './source-error.ts'
import { type Failure, LiveStore, NO_VALIDATORS, type Resource, type StoreLimits } from './store.ts'
import type { SourceState } from './source-state.ts'
import { StatusError, visit, type Visited } from './visit.ts'

/** The documents of sources on the web. */
export interface LiveDocuments {
  /** Starts to refresh. Resolves without waiting for a response. */
  start(): Promise<void>
  sources(): readonly SourceState[]
  /** Aborts all requests. Call it before the corpus is closed. */
  close(): Promise<void>
}

/** Settings of {@link createLiveDocuments}. */
export interface LiveDocumentsOptions {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly web: Web
  readonly corpus: CorpusWithPages
  readonly isolated: Pick<Isolated, 'readPage' | 'readListing'>
  /** URLs of sitemaps, feeds and pages. */
  readonly sources: readonly string[]
  /** Sent with the requests of pages, listings and robots.txt. Default: none. */
  readonly headers?: SourceHeaders
  /** How often a URL is requested, in ms of the clock. */
  readonly interval: number
  /**
   * The speed of the clock relative to real time. A URL is requested at most once in {@link MIN_REAL_INTERVAL} of real time, or in
   * `interval` ms of real time if that is shorter. Default 1.
   */
  readonly speed?: number
  /** The delay between two requests to a host, in ms of real time; a longer `Crawl-delay` takes precedence. Default 500. */
  readonly hostDelay?: number
  readonly limits?: Partial<StoreLimits>
  /** Called with a {@link SourceError}, or with an error of the database. */
  readonly onError: (error: unknown) => void
}

/** Default of the option `refreshInterval`, in ms. */
export const REFRESH_INTERVAL = 15 * 60_000
/** The shortest interval, in ms. */
export const MIN_REFRESH_INTERVAL = 1_000
/** Minimum interval between requests of a URL with a fast clock, in ms of real time: the site does not use that clock. */
const MIN_REAL_INTERVAL = 60_000

const EXCLUSIONS = { disallowed: 'robots.txt disallows it', noindex: 'noindex' } as const
const LIMITS: StoreLimits = { perSource: 2_000, inTotal: 10_000, depth: 3 }
const HOST_DELAY = 500
/** The longest `Crawl-delay` that is respected, in ms. */
const MAX_CRAWL_DELAY = 30_000
const DAY = 86_400_000
/** How long requests to a failing host pause: the first time, doubled after each further failure, and at most. In ms of real time. */
const FIRST_PAUSE = 30_000
const MAX_PAUSE = 3_600_000
/** Number of failures of a host, one after another, that count as failures of its pages. */
const TOLERATED = 2
/** Number of responses, one after another, by which a page has vanished. */
const CONFIRMED = 2

/**
 * Refreshes pages, feeds and sitemaps in the index. A page leaves the index when two requests found that it does not exist, when
 * the site excludes it, or when no source has it. A page that fails keeps its last copy.
 */
export function createLiveDocuments(options: LiveDocumentsOptions): LiveDocuments {
  const { database, clock, web, corpus, sources, speed = 1, hostDelay = HOST_DELAY, onError } = options
  const { headers = new Map() } = options
  const interval = Math.max(options.interval, Math.min(options.interval, MIN_REAL_INTERVAL) * speed)
  const longestWait = DAY * speed
  const connections = realTimeOf(clock)
  const store = new LiveStore(database, { ...LIMITS, ...options.limits })
  const robots = createRobots(web, connections, headers)
  const readers = isolatedReaders(options.isolated)
  /** Number of failures of each host, one after another. */
  const failures = new Map<string, number>()
  /** Sources that were reported since at least half of their URLs fail. */
  const rotten = new Set<string>()
  /** The last report about the incomplete listing at a URL; empty for a complete one. */
  const left = new Map<string, string>()
  const refresh = createRefresh({ clock, store, visit: visitOne, onError })

  async function visitOne(resource: Resource, signal: AbortSignal): Promise<HostPause> {
    const url = new URL(resource.url)
    const delay = () => Math.max(hostDelay, Math.min(robots.crawlDelay(url) ?? 0, MAX_CRAWL_DELAY))
    try {
      const visited = await visit(
        resource,
        { web, robots, readers, headers, now: () => connections.now() },
        signal,
      )
      await corpus.pages.update((pages) => found(resource, visited, pages))
      failures.delete(url.host)
      return { delay: delay(), isFailing: false }
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof UnreadError) {
        postponed(resource, error)
        return { delay: delay(), isFailing: false }
      }
      if (!(error instanceof WebError || error instanceof StatusError)) throw error
      failed(resource, error)
      const pause = pauseAfter(url.host, error)
      return { delay: Math.max(delay(), pause), isFailing: pause > 0 }
    }
  }

  function found(resource: Resource, { status, finding, maxAge }: Visited, pages: PageWriter): void {
    const { url } = resource
    // Its source may have been changed by another listing in the meantime.
    if (!store.has(url)) return
    const now = clock.now()
    let failure: Failure | null = null
    let missing = 0
    switch (finding.type) {
      case 'unchanged':
        store.validate(url, finding.validators)
        break
      case 'page':
        store.validate(url, finding.validators)
        pages.put(url, placeOf(url), finding.document)
        break
      case 'listing': {
        store.validate(url, finding.validators)
        const { entries, items, unread } = finding.listing
        const listed = store.list(url, entries, now)
        for (const removed of [url, ...listed.removed]) pages.remove(removed)
        for (const item of items) if (store.has(item.url)) pages.put(item.url, placeOf(url), item.document)
        reportLeft(url, listed.left, unread)
        break
      }
      case 'excluded':
        failure = { code: finding.reason, message: EXCLUSIONS[finding.reason] }
        remove(url, pages)
        break
      case 'missing':
        failure = { code: `http_${finding.status}`, message: `The server responded with ${finding.status}` }
        missing = resource.missing + 1
        if (missing >= CONFIRMED) remove(url, pages)
    }
    const wait = missing > 0 ? backoff(missing) : Math.max(interval, Math.min(maxAge, DAY))
    store.visited(url, { fetchedAt: now, nextAt: now + wait, status, failures: 0, missing, failure })
    report(resource, failure)
    reportFailing(resource)
  }

  function remove(url: string, pages: PageWriter): void {
    store.validate(url, NO_VALIDATORS)
    pages.remove(url)
  }

  function failed(resource: Resource, error: WebError | StatusError): void {
    const now = clock.now()
    const count = resource.failures + 1
    const asked = error instanceof StatusError ? Math.min((error.retryAfter ?? 0) * speed, longestWait) : 0
    const code = error instanceof StatusError ? (`http_${error.status}` as const) : error.kind
    const failure = { code, message: error.message }
    store.visited(resource.url, {
      fetchedAt: now,
      nextAt: now + Math.max(backoff(count), asked),
      status: error.status ?? null,
      failures: count,
      missing: resource.missing,
      failure,
    })
    report(resource, failure, error)
    reportFailing(resource)
  }

  /** Postpones the URL without counting a failure: its site has responded. */
  function postponed(resource: Resource, error: UnreadError): void {
    const wait = Math.min(interval, MIN_REAL_INTERVAL * speed)
    const now = clock.now()
    const failure = { code: 'not_read', message: error.message } as const
    store.postpone(resource.url, now, now + wait, failure)
    report(resource, failure, error)
  }

  /** The wait after failures of a URL: the interval, doubled after each further one, at most a day of real time. */
  function backoff(count: number): number {
    return Math.max(interval, Math.min(interval * 2 ** (count - 1), longestWait))
  }

  /** How long requests to a host pause after a failure, in ms of real time. */
  function pauseAfter(host: string, error: WebError | StatusError): number {
    const { status } = error
    const isOfHost =
      error instanceof StatusError
        ? error.status >= 500 || error.status === 429
        : error.kind === 'fetch_error' || error.kind === 'timeout'
    if (!isOfHost) {
      failures.delete(host)
      return 0
    }
    const count = (failures.get(host) ?? 0) + 1
    failures.set(host, count)
    const asked = error instanceof StatusError ? Math.min(error.retryAfter ?? 0, MAX_PAUSE) : 0
    const isOverloaded = status === 429 || status === 503
    if (!isOverloaded && count <= TOLERATED) return asked
    return Math.max(asked, Math.min(FIRST_PAUSE * 2 ** Math.min(count - 1, 10), MAX_PAUSE))
  }

  /** Reports a failure of a source or a sitemap, once until it changes. Failures of pages are in the database. */
  function report({ url, role, error: before }: Resource, failure: Failure | null, cause?: Error): void {
    if (role === 'page' || failure === null || failure.message === before) return
    onError(new SourceError(url, failure.message, { cause }))
  }

  /** Reports a source of which at least half of the URLs fail, once until fewer do: one broken page is no news. */
  function reportFailing({ url, role }: Resource): void {
    if (role !== 'page') return
    for (const source of store.sourcesOf(url)) {
      const { urls, failing: count } = store.counts(source)
      if (count * 2 < urls) rotten.delete(source)
      else if (!rotten.has(source)) {
        rotten.add(source)
        onError(new SourceError(source, `${count} of its ${urls} URLs were not read by their last request`))
      }
    }
  }

  /** Reports the entries of a listing that are not read, once until they change. */
  function reportLeft(url: string, beyond: number, unread: number): void {
    const reasons = [
      ...(beyond > 0 ? [`it lists ${beyond} URLs beyond the limits`] : []),
      ...(unread > 0 ? [`${unread} of its items cannot be read, or not in time`] : []),
    ]
    const message = reasons.join('; ')
    if (message !== '' && left.get(url) !== message) onError(new SourceError(url, message))
    left.set(url, message)
  }

  return {
    async start() {
      const isEmpty = corpus.pages.count() === 0
      await corpus.pages.update((pages) => {
        // The index was rebuilt, and its pages are lost.
        if (isEmpty) store.invalidate(clock.now())
        for (const url of store.configure(sources, clock.now())) pages.remove(url)
      })
      corpus.pages.refreshBy(refresh.settled)
      refresh.start()
    },
    sources: () =>
      sources.map((url) => {
        const { urls, failing, last, fetchedAt, error } = store.source(url)
        return {
          url: shownUrl(url),
          urls: urls.length,
          pages: corpus.pages.countOf(urls),
          failing,
          last_error:
            last === undefined ? null : { url: shownUrl(last.url), code: last.code, at: isoTime(last.at) },
          refreshed_at: fetchedAt === null ? null : isoTime(fetchedAt),
          error,
        }
      }),
    close: () => refresh.close(),
  }
}

function isoTime(time: number): string {
  return new Date(time).toISOString()
}

/** The path whose words find a page: its host and its path. */
function placeOf(url: string): string {
  const { host, pathname } = new URL(url)
  const path = `${host}${pathname}`.replace(/\/$/, '')
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
