import type { FetchPolicy } from '../../protocol/search.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { IsolatedError } from '../isolated/isolated-error.ts'
import type { Web, WebResponse } from '../web/safe-fetch.ts'
import { WebError } from '../web/web-error.ts'
import { decodeText } from './charset.ts'
import { createLimiter } from './limiter.ts'
import { PageCache } from './page-cache.ts'
import { type Page, PAGE_TYPES } from './page.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Maximum size of a page, in bytes. */
const MAX_PAGE_BYTES = 4 * 2 ** 20
/** Maximum number of pages that are fetched at once, of all requests. */
const CONCURRENCY = 16
/** How many characters of pages are kept. */
const CACHE_CHARACTERS = 16 * 2 ** 20
/** How old a kept page may be by default, in s. */
const DEFAULT_MAX_AGE = 600
/** How many characters of the body of a failed response are returned. */
const MAX_ERROR_CONTENT = 2_000
/** Statuses after which a kept page is used instead. The others say that there is no such page. */
const TEMPORARY = new Set([408, 425, 429])

/** A page that responded with another status than 2xx. */
export class PageStatusError extends Error {
  readonly status: number
  /** The beginning of the body, if it is a text. */
  readonly content: string | null

  constructor(status: number, content: string | null) {
    super(`The page responded with ${status}`)
    this.name = 'PageStatusError'
    this.status = status
    this.content = content
  }
}

/** A page, and whether it was kept from an earlier request because it could not be fetched. */
interface LivePage {
  readonly page: Page
  readonly isFallback: boolean
}

/** How a page is fetched. */
interface PageRequest {
  readonly policy: FetchPolicy
  /** Timeout, in ms of real time. */
  readonly timeout: number
  readonly signal: AbortSignal
}

/** Pages of the web. */
export interface LivePages {
  /** Fetches a page, or returns the kept one. Rejects with a WebError, a {@link PageStatusError} or the signal's reason. */
  load(url: string, request: PageRequest): Promise<LivePage>
}

/** Creates the access to pages of the web. `now` is the Unix time in ms. */
export function createLivePages(
  web: Web,
  isolated: Pick<Isolated, 'readPage'>,
  now: () => number,
): LivePages {
  const cache = new PageCache(CACHE_CHARACTERS)
  const limiter = createLimiter(CONCURRENCY)

  async function fetchPage(url: string, { timeout, signal }: PageRequest): Promise<Page> {
    return await limiter(() => readLive(url, { timeout, signal }), signal)
  }

  /** Reads a page. The conversion is within the limit, too, so that few pages are in memory. */
  async function readLive(
    url: string,
    { timeout, signal }: Pick<PageRequest, 'timeout' | 'signal'>,
  ): Promise<Page> {
    const response = await web.fetch(url, {
      headers: { accept: 'text/html, text/markdown, text/plain;q=0.9, */*;q=0.1' },
      timeout,
      maxBytes: MAX_PAGE_BYTES,
      mediaTypes: PAGE_TYPES,
      signal,
    })
    if (response.status < 200 || response.status > 299) {
      throw new PageStatusError(response.status, errorContent(response))
    }
    const { mediaType, headers, body, url: address } = response
    const contentType = headers['content-type'] ?? ''
    try {
      return await isolated.readPage({ mediaType, contentType, body, url: address }, signal)
    } catch (error) {
      throw error instanceof IsolatedError ? unreadable(error) : error
    }
  }

  return {
    async load(url, request) {
      const { max_age_seconds: maxAge = DEFAULT_MAX_AGE, disable_cache_fallback: noFallback } = request.policy
      const cached = cache.get(url)
      if (cached !== undefined && now() - cached.fetchedAt <= maxAge * 1_000) {
        return { page: cached.page, isFallback: false }
      }
      try {
        const page = await fetchPage(url, request)
        cache.put(url, { page, fetchedAt: now() })
        return { page, isFallback: false }
      } catch (error) {
        if (cached === undefined || noFallback === true || !isTemporary(error)) throw error
        return { page: cached.page, isFallback: true }
      }
    },
  }
}

function isTemporary(error: unknown): boolean {
  if (error instanceof WebError) return error.kind === 'fetch_error' || error.kind === 'timeout'
  return error instanceof PageStatusError && (error.status >= 500 || TEMPORARY.has(error.status))
}

function errorContent({ mediaType, headers, body }: WebResponse): string | null {
  if (!mediaType.startsWith('text/') && mediaType !== 'application/json') return null
  const text = decodeText(body, headers['content-type'] ?? '', mediaType === 'text/html')
  return cutText(text, MAX_ERROR_CONTENT).toWellFormed()
}

function unreadable(error: IsolatedError): WebError {
  const kind = error.kind === 'timeout' ? 'timeout' : 'fetch_error'
  return new WebError(kind, `The page could not be converted to Markdown. ${error.message}`, { cause: error })
}
