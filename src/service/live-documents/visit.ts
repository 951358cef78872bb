import { createHash } from 'node:crypto'
import { parseRetryAfter } from '../../protocol/retry-after-header.ts'
import type { CorpusDocument } from '../corpus/corpus.ts'
import { documentKind, type DocumentKind } from '../corpus/document-kind.ts'
import { type Page, PAGE_TYPES } from '../extract/page.ts'
import type { Web, WebResponse } from '../web/safe-fetch.ts'
import { WebError } from '../web/web-error.ts'
import { webUrl } from './listed-url.ts'
import { dayOf, type Listing, MAX_LISTING_BYTES, readListing, unzipped } from './listing.ts'
import type { Readers } from './readers.ts'
import type { Robots } from './robots-access.ts'
import type { SourceHeaders } from './source-headers.ts'
import { NO_VALIDATORS, type Resource, type Validators } from './store.ts'

/** Maximum size of a page, in bytes. */
const MAX_PAGE_BYTES = 4 * 2 ** 20
/** The longest wait that a site can ask for, in ms: the longest one between two requests of a URL that fails. */
const MAX_RETRY_AFTER = 86_400_000
/** How long a request may take with its redirects and its body, in ms of real time. */
const TIMEOUT = 20_000

const XML_TYPES = [
  'application/atom+xml',
  'application/gzip',
  'application/octet-stream',
  'application/rdf+xml',
  'application/rss+xml',
  'application/x-gzip',
  'application/xml',
  'text/xml',
]

/** The result of a request. */
type VisitResult =
  /** The copy in the index is the current one. */
  | { readonly type: 'unchanged'; readonly validators: Validators }
  | { readonly type: 'page'; readonly document: CorpusDocument; readonly validators: Validators }
  | { readonly type: 'listing'; readonly listing: Listing; readonly validators: Validators }
  /** The site does not want it to be in an index: by its robots.txt, or by `noindex`. */
  | { readonly type: 'excluded'; readonly reason: 'disallowed' | 'noindex' }
  /** 404 or 410. */
  | { readonly type: 'missing'; readonly status: number }

/** A request with its outcome. */
export interface Visited {
  readonly status: number | null
  readonly finding: VisitResult
  /** How long the response may be used, in ms. */
  readonly maxAge: number
}

/** A response that is a failure. */
export class StatusError extends Error {
  readonly status: number
  /** The wait that the server asks for, in ms; undefined if it asks for none. */
  readonly retryAfter: number | undefined

  constructor(status: number, retryAfter: number | undefined) {
    super(`The server responded with ${status}`)
    this.name = 'StatusError'
    this.status = status
    this.retryAfter = retryAfter
  }
}

/** The dependencies of requests. */
export interface VisitContext {
  readonly web: Web
  readonly robots: Robots
  readonly readers: Readers
  readonly headers: SourceHeaders
  /** Real time, Unix time in ms. */
  readonly now: () => number
}

/** A URL that robots.txt disallows. */
class DisallowedError extends Error {}

/**
 * Requests a URL, conditionally if there is a copy. Redirects stay on the host, except for redirects of a source. Rejects with a
 * WebError, a {@link StatusError}, an UnreadError or the signal's reason.
 */
export async function visit(
  resource: Resource,
  { web, robots, readers, headers, now }: VisitContext,
  signal: AbortSignal,
): Promise<Visited> {
  const { url, role } = resource
  const { host } = new URL(url)

  async function checkRobots(target: URL): Promise<void> {
    const rules = await robots.rulesFor(target, signal)
    if (!rules.isAllowed(target)) throw new DisallowedError()
  }

  try {
    await checkRobots(new URL(url))
    const response = await web.fetch(url, {
      headers: {
        ...headers.get(new URL(url).origin),
        accept:
          role === 'page'
            ? 'text/html, text/markdown, text/plain;q=0.9, */*;q=0.1'
            : 'text/html, application/xml, text/xml, application/rss+xml, application/atom+xml, text/plain;q=0.9, */*;q=0.1',
        ...(resource.etag !== undefined && { 'if-none-match': resource.etag }),
        ...(resource.lastModified !== undefined && { 'if-modified-since': resource.lastModified }),
      },
      timeout: TIMEOUT,
      maxBytes: role === 'page' ? MAX_PAGE_BYTES : MAX_LISTING_BYTES,
      mediaTypes: role === 'page' ? PAGE_TYPES : [...PAGE_TYPES, ...XML_TYPES],
      checkRedirect: async (target) => {
        if (role !== 'source' && target.host !== host) {
          throw new WebError('blocked_address', 'The redirect leaves the host')
        }
        await checkRobots(target)
      },
      signal,
    })
    const { status } = response
    return {
      status,
      finding: await findingOf(resource, response, { readers, now }, signal),
      maxAge: maxAgeOf(response),
    }
  } catch (error) {
    if (!(error instanceof DisallowedError)) throw error
    return { status: null, finding: { type: 'excluded', reason: 'disallowed' }, maxAge: 0 }
  }
}

async function findingOf(
  resource: Resource,
  response: WebResponse,
  { readers, now }: Pick<VisitContext, 'readers' | 'now'>,
  signal: AbortSignal,
): Promise<VisitResult> {
  const { role, hash } = resource
  const { status, headers, url } = response
  const statusFinding = findingOfStatus(resource, response, now)
  if (statusFinding !== undefined) return statusFinding
  const body = role === 'page' ? response.body : await unzipped(response.body)
  const validators = {
    etag: headers['etag'],
    lastModified: headers['last-modified'],
    hash: createHash('sha256')
      .update(url)
      .update('\0')
      .update(headers['content-type'] ?? '')
      .update('\0')
      .update(body)
      .digest('hex'),
  }
  if (validators.hash === hash) return { type: 'unchanged', validators }
  if (role !== 'page') {
    const source = { url, mediaType: response.mediaType, contentType: headers['content-type'] ?? '', body }
    const listing = await readListing(source, readers, now, signal)
    // With its validators, it would not be read again before it changes.
    if (listing?.isCut === true) return { type: 'listing', listing, validators: NO_VALIDATORS }
    if (listing !== undefined) return { type: 'listing', listing, validators }
  }
  if (role === 'sitemap' || !PAGE_TYPES.includes(response.mediaType)) {
    throw new WebError('unsupported_content_type', 'It is no sitemap, feed or page', { status })
  }
  const page = await readers.readPage(
    { mediaType: response.mediaType, contentType: headers['content-type'] ?? '', body, url },
    signal,
  )
  if (isNoIndex(page.robots)) return { type: 'excluded', reason: 'noindex' }
  if (page.text === '') throw new WebError('unsupported_content_type', 'The page has no text', { status })
  return { type: 'page', validators, document: documentOf(page, resource, response) }
}

/** What the status and the headers alone say; undefined if the body is to be read. */
function findingOfStatus(
  { hash, etag, lastModified }: Resource,
  { status, headers }: WebResponse,
  now: () => number,
): VisitResult | undefined {
  if (status === 304) {
    // Without a copy the request has no condition.
    if (hash === undefined) throw new StatusError(status, undefined)
    return {
      type: 'unchanged',
      validators: {
        hash,
        etag: headers['etag'] ?? etag,
        lastModified: headers['last-modified'] ?? lastModified,
      },
    }
  }
  if (status === 404 || status === 410) return { type: 'missing', status }
  if (status < 200 || status > 299) {
    throw new StatusError(
      status,
      parseRetryAfter(headers['retry-after'], headers['date'], now(), MAX_RETRY_AFTER),
    )
  }
  return isNoIndex(headers['x-robots-tag']) ? { type: 'excluded', reason: 'noindex' } : undefined
}

function documentOf(page: Page, { listedDate }: Resource, { url, headers }: WebResponse): CorpusDocument {
  return {
    url: canonicalUrl(page.canonical, url),
    title: page.title ?? titleOf(url),
    publishDate: page.publishDate ?? dayOf(listedDate) ?? dayOf(headers['last-modified']),
    kind: kindOf(url),
    text: page.text,
  }
}

/** The canonical URL that a page states, if it is of the same host: no page speaks for another host. */
function canonicalUrl(stated: string | undefined, url: string): string {
  const canonical = webUrl(stated, url)
  return canonical !== undefined && new URL(canonical).host === new URL(url).host ? canonical : url
}

/** The kind of a page, by the name of its file. Names without an extension, such as `/news`, belong to sections of a site. */
function kindOf(url: string): DocumentKind {
  const { pathname } = new URL(url)
  const kind = /\.[a-z]+$/i.test(pathname) ? documentKind(pathname) : 'page'
  return kind === 'manifest' ? 'page' : kind
}

/** The last part of a path, for a page without a title. */
function titleOf(url: string): string {
  const { pathname, host } = new URL(url)
  return pathname.split('/').findLast((part) => part !== '') ?? host
}

/** Whether directives exclude a page: directives of `X-Robots-Tag` may begin with the name of a robot. */
function isNoIndex(directives: string | undefined): boolean {
  return /(?:^|[\s,:])(?:noindex|none)(?:$|[\s,])/i.test(directives ?? '')
}

function maxAgeOf({ headers }: WebResponse): number {
  const seconds = /(?:^|[\s,])max-age\s*=\s*"?(\d{1,9})/i.exec(headers['cache-control'] ?? '')?.[1]
  return Number(seconds ?? 0) * 1_000
}
