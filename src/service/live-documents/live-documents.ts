import type { DatabaseSync } from 'node:sqlite'
import { type Clock, realTimeOf } from '../clock.ts'
import type { CorpusWithPages } from '../corpus/open-corpus.ts'
import type { PageWriter } from '../corpus/page-index.ts'
import type { Isolated } from '../isolated/isolated.ts'
import type { Web } from '../web/safe-fetch.ts'
import { WebError } from '../web/web-error.ts'
import { isolatedReaders, UnreadError } from './readers.ts'
import { type HostPause, Refresh } from './refresh.ts'
import { createRobots } from './robots-access.ts'
import { shownUrl } from './source.ts'
import type { SourceHeaders } from './source-headers.ts'
import { DocumentSourceError } from './document-source-error.ts'
import { type Failure, LiveStore, NO_VALIDATORS, type Resource, type StoreLimits } from './store.ts'
import type { SourceState } from './source-state.ts'
import { StatusError, visit, type VisitContext, type Visited } from './visit.ts'

/** Settings of {@link LiveDocuments}. */
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
  /** Called with a {@link DocumentSourceError}, or with an error of the database. */
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
 * Refreshes pages, feeds and sitemaps of sources on the web in the index. A page leaves the index when two requests found that it does
 * not exist, when the site excludes it, or when no source has it. A page that fails keeps its last copy.
 */
export class LiveDocuments {
  readonly #clock: Clock
  readonly #corpus: CorpusWithPages
  readonly #sources: readonly string[]
  readonly #speed: number
  readonly #interval: number
  readonly #longestWait: number
  readonly #hostDelay: number
  readonly #store: LiveStore
  readonly #visits: VisitContext
  readonly #refresh: Refresh
  readonly #reports: SourceReports
  readonly #hosts = new HostFailures()

  constructor(options: LiveDocumentsOptions) {
    const { database, clock, web, corpus, sources, headers = new Map(), speed = 1 } = options
    const { hostDelay = HOST_DELAY, onError } = options
    this.#clock = clock
    this.#corpus = corpus
    this.#sources = sources
    this.#speed = speed
    this.#interval = Math.max(options.interval, Math.min(options.interval, MIN_REAL_INTERVAL) * speed)
    this.#longestWait = DAY * speed
    this.#hostDelay = hostDelay
    this.#store = new LiveStore(database, { ...LIMITS, ...options.limits })
    this.#reports = new SourceReports(this.#store, onError)
    const connections = realTimeOf(clock)
    this.#visits = {
      web,
      robots: createRobots(web, connections, headers),
      readers: isolatedReaders(options.isolated),
      headers,
      now: () => connections.now(),
    }
    this.#refresh = new Refresh({
      clock,
      store: this.#store,
      visit: (resource, signal) => this.#visit(resource, signal),
      onError,
    })
  }

  /** Starts to refresh. Resolves without waiting for a response. */
  async start(): Promise<void> {
    const { pages: index } = this.#corpus
    const isEmpty = index.count() === 0
    await index.update((pages) => {
      const now = this.#clock.now()
      // The index was rebuilt, and its pages are lost.
      if (isEmpty) this.#store.invalidate(now)
      for (const url of this.#store.configure(this.#sources, now)) pages.remove(url)
    })
    index.refreshBy(() => this.#refresh.settled())
    this.#refresh.start()
  }

  sources(): readonly SourceState[] {
    return this.#sources.map((url) => {
      const { urls, failing, last, fetchedAt, error } = this.#store.source(url)
      return {
        url: shownUrl(url),
        urls: urls.length,
        pages: this.#corpus.pages.countOf(urls),
        failing,
        last_error:
          last === undefined ? null : { url: shownUrl(last.url), code: last.code, at: isoTime(last.at) },
        refreshed_at: fetchedAt === null ? null : isoTime(fetchedAt),
        error,
      }
    })
  }

  /** Aborts all requests. Call it before the corpus is closed. */
  close(): Promise<void> {
    return this.#refresh.close()
  }

  async #visit(resource: Resource, signal: AbortSignal): Promise<HostPause> {
    const url = new URL(resource.url)
    const delay = () =>
      Math.max(this.#hostDelay, Math.min(this.#visits.robots.crawlDelay(url) ?? 0, MAX_CRAWL_DELAY))
    try {
      const visited = await visit(resource, this.#visits, signal)
      await this.#corpus.pages.update((pages) => this.#found(resource, visited, pages))
      this.#hosts.succeeded(url.host)
      return { delay: delay(), isFailing: false }
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof UnreadError) {
        this.#postponed(resource, error)
        return { delay: delay(), isFailing: false }
      }
      if (!(error instanceof WebError || error instanceof StatusError)) throw error
      this.#failed(resource, error)
      const pause = this.#hosts.pauseAfter(url.host, error)
      return { delay: Math.max(delay(), pause), isFailing: pause > 0 }
    }
  }

  #found(resource: Resource, { status, finding, maxAge }: Visited, pages: PageWriter): void {
    const { url } = resource
    // Its source may have been changed by another listing in the meantime.
    if (!this.#store.has(url)) return
    const now = this.#clock.now()
    let failure: Failure | null = null
    let missing = 0
    switch (finding.type) {
      case 'unchanged':
        this.#store.validate(url, finding.validators)
        break
      case 'page':
        this.#store.validate(url, finding.validators)
        pages.put(url, placeOf(url), finding.document)
        break
      case 'listing': {
        this.#store.validate(url, finding.validators)
        const { entries, items, unread } = finding.listing
        const listed = this.#store.list(url, entries, now)
        for (const removed of [url, ...listed.removed]) pages.remove(removed)
        for (const item of items)
          if (this.#store.has(item.url)) pages.put(item.url, placeOf(url), item.document)
        this.#reports.left(url, listed.left, unread)
        break
      }
      case 'excluded':
        failure = { code: finding.reason, message: EXCLUSIONS[finding.reason] }
        this.#remove(url, pages)
        break
      case 'missing':
        failure = { code: `http_${finding.status}`, message: `The server responded with ${finding.status}` }
        missing = resource.missing + 1
        if (missing >= CONFIRMED) this.#remove(url, pages)
    }
    const wait = missing > 0 ? this.#backoff(missing) : Math.max(this.#interval, Math.min(maxAge, DAY))
    this.#store.visited(url, { fetchedAt: now, nextAt: now + wait, status, failures: 0, missing, failure })
    this.#reports.visited(resource, failure)
  }

  #remove(url: string, pages: PageWriter): void {
    this.#store.validate(url, NO_VALIDATORS)
    pages.remove(url)
  }

  #failed(resource: Resource, error: WebError | StatusError): void {
    const now = this.#clock.now()
    const count = resource.failures + 1
    const asked =
      error instanceof StatusError ? Math.min((error.retryAfter ?? 0) * this.#speed, this.#longestWait) : 0
    const code = error instanceof StatusError ? (`http_${error.status}` as const) : error.kind
    const failure = { code, message: error.message }
    this.#store.visited(resource.url, {
      fetchedAt: now,
      nextAt: now + Math.max(this.#backoff(count), asked),
      status: error.status ?? null,
      failures: count,
      missing: resource.missing,
      failure,
    })
    this.#reports.visited(resource, failure, error)
  }

  /** Postpones the URL without counting a failure: its site has responded. */
  #postponed(resource: Resource, error: UnreadError): void {
    const wait = Math.min(this.#interval, MIN_REAL_INTERVAL * this.#speed)
    const now = this.#clock.now()
    const failure = { code: 'not_read', message: error.message } as const
    this.#store.postpone(resource.url, now, now + wait, failure)
    this.#reports.failed(resource, failure, error)
  }

  /** The wait after failures of a URL: the interval, doubled after each further one, at most a day of real time. */
  #backoff(count: number): number {
    return Math.max(this.#interval, Math.min(this.#interval * 2 ** (count - 1), this.#longestWait))
  }
}

/** Failures of hosts, one after another, and how long requests to a failing host pause. */
class HostFailures {
  readonly #counts = new Map<string, number>()

  succeeded(host: string): void {
    this.#counts.delete(host)
  }

  /** How long requests to a host pause after a failure, in ms of real time. */
  pauseAfter(host: string, error: WebError | StatusError): number {
    const { status } = error
    const isOfHost =
      error instanceof StatusError
        ? error.status >= 500 || error.status === 429
        : error.kind === 'fetch_error' || error.kind === 'timeout'
    if (!isOfHost) {
      this.succeeded(host)
      return 0
    }
    const count = (this.#counts.get(host) ?? 0) + 1
    this.#counts.set(host, count)
    const asked = error instanceof StatusError ? Math.min(error.retryAfter ?? 0, MAX_PAUSE) : 0
    const isOverloaded = status === 429 || status === 503
    if (!isOverloaded && count <= TOLERATED) return asked
    return Math.max(asked, Math.min(FIRST_PAUSE * 2 ** Math.min(count - 1, 10), MAX_PAUSE))
  }
}

/** Reports problems of sources, each once until it changes. */
class SourceReports {
  readonly #store: LiveStore
  readonly #onError: (error: unknown) => void
  /** Sources that were reported since at least half of their URLs fail. */
  readonly #rotten = new Set<string>()
  /** The last report about the incomplete listing at a URL; empty for a complete one. */
  readonly #left = new Map<string, string>()

  constructor(store: LiveStore, onError: (error: unknown) => void) {
    this.#store = store
    this.#onError = onError
  }

  /** The result of a request: a failure, or null. */
  visited(resource: Resource, failure: Failure | null, cause?: Error): void {
    this.failed(resource, failure, cause)
    this.#failing(resource)
  }

  /** Reports a failure of a source or a sitemap, once until it changes. Failures of pages are in the database. */
  failed({ url, role, error: before }: Resource, failure: Failure | null, cause?: Error): void {
    if (role === 'page' || failure === null || failure.message === before) return
    this.#onError(new DocumentSourceError(url, failure.message, { cause }))
  }

  /** Reports a source of which at least half of the URLs fail, once until fewer do: one broken page is no news. */
  #failing({ url, role }: Resource): void {
    if (role !== 'page') return
    for (const source of this.#store.sourcesOf(url)) {
      const { urls, failing: count } = this.#store.counts(source)
      if (count * 2 < urls) this.#rotten.delete(source)
      else if (!this.#rotten.has(source)) {
        this.#rotten.add(source)
        this.#onError(
          new DocumentSourceError(source, `${count} of its ${urls} URLs were not read by their last request`),
        )
      }
    }
  }

  /** Reports the entries of a listing that are not read, once until they change. */
  left(url: string, beyond: number, unread: number): void {
    const reasons = [
      ...(beyond > 0 ? [`it lists ${beyond} URLs beyond the limits`] : []),
      ...(unread > 0 ? [`${unread} of its items cannot be read, or not in time`] : []),
    ]
    const message = reasons.join('; ')
    if (message !== '' && this.#left.get(url) !== message)
      this.#onError(new DocumentSourceError(url, message))
    this.#left.set(url, message)
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
